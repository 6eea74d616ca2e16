import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
random.seed(0)
torch.manual_seed(0)

STATE, ACTIONS = 24, 6
BATCH = 2048 if device == "cuda" else 256
ENVS = 64
GAMMA = 0.97


class QNet(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(STATE, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, ACTIONS),
        )

    def forward(self, s):
        return self.net(s)


class Replay:
    def __init__(self, capacity=1_000_000):
        self.s = torch.zeros(capacity, STATE, device=device)
        self.a = torch.zeros(capacity, dtype=torch.long, device=device)
        self.r = torch.zeros(capacity, device=device)
        self.s2 = torch.zeros(capacity, STATE, device=device)
        self.size, self.capacity = 0, capacity
        self.entries = []

    def add(self, s, a, r, s2):
        where = torch.arange(self.size, self.size + len(s), device=device) % self.capacity
        self.s[where], self.a[where], self.r[where], self.s2[where] = s, a, r, s2
        new = range(self.size, min(self.size + len(s), self.capacity))
        self.entries.extend([1.0 + random.random(), slot] for slot in new)
        self.size = min(self.size + len(s), self.capacity)

    def sample(self, n):
        self.entries.sort(key=lambda e: e[0], reverse=True)
        total = sum(e[0] for e in self.entries)
        picked = random.choices(range(len(self.entries)), [e[0] / total for e in self.entries], k=n)
        slots = torch.tensor([self.entries[i][1] for i in picked], device=device)
        for i in picked:
            self.entries[i][0] *= 0.9
        return self.s[slots], self.a[slots], self.r[slots], self.s2[slots]


dynamics = torch.randn(ACTIONS, STATE, device=device) * 0.3
goal = torch.randn(STATE, device=device)


def env_step(s, a):
    s2 = 0.9 * s + dynamics[a] + 0.05 * torch.randn_like(s)
    return s2, -(s2 - goal).pow(2).mean(1)


online, target = QNet().to(device), QNet().to(device)
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=5e-4)
replay = Replay()
state = torch.randn(ENVS, STATE, device=device)
step = 0
start = time.time()
while time.time() - start < 14:
    with torch.no_grad():
        greedy = online(state).argmax(1)
    explore = torch.rand(ENVS, device=device) < 0.2
    action = torch.where(explore, torch.randint(0, ACTIONS, (ENVS,), device=device), greedy)
    nxt, reward = env_step(state, action)
    replay.add(state, action, reward, nxt)
    state = nxt

    s, a, r, s2 = replay.sample(BATCH)
    with torch.no_grad():
        backup = r + GAMMA * target(s2).max(1).values
    q = online(s).gather(1, a[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(q, backup)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 250 == 0:
        target.load_state_dict(online.state_dict())
        print(f"step {step} buffer {replay.size} td {loss.item():.4f} reward {reward.mean().item():.3f}")

if device == "cuda":
    torch.cuda.synchronize()
elapsed = time.time() - start
print(f"{step / elapsed:.2f} steps/s, {step * BATCH / elapsed:.0f} samples/s")
