import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 7
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class GridWorld:
    """12x12 grid with walls and two moving hazards; reach the goal."""

    def __init__(self, n=12):
        self.n = n
        rs = np.random.RandomState(1)
        self.walls = rs.rand(n, n) < 0.15
        self.walls[0, 0] = self.walls[n - 1, n - 1] = False

    def reset(self):
        self.pos = np.array([0, 0])
        self.haz = np.random.randint(3, self.n, size=(2, 2))
        self.t = 0
        return self.obs()

    def obs(self):
        o = np.zeros(4 * self.n + 9, dtype=np.float32)
        o[self.pos[0]] = 1
        o[self.n + self.pos[1]] = 1
        for k, h in enumerate(self.haz):
            o[2 * self.n + k * self.n + h[0]] = 0.5 + h[1] / self.n
        p = np.pad(self.walls, 1, constant_values=True)
        o[4 * self.n:] = p[self.pos[0]:self.pos[0] + 3, self.pos[1]:self.pos[1] + 3].ravel()
        return o

    def step(self, a):
        d = ((1, 0), (-1, 0), (0, 1), (0, -1))[a]
        q = self.pos + d
        r = -0.02
        if (q >= 0).all() and (q < self.n).all() and not self.walls[q[0], q[1]]:
            self.pos = q
        else:
            r = -0.1
        self.haz = np.clip(self.haz + np.random.randint(-1, 2, size=(2, 2)), 0, self.n - 1)
        self.t += 1
        if (self.haz == self.pos).all(1).any():
            return self.obs(), -1.0, True
        if (self.pos == self.n - 1).all():
            return self.obs(), 2.0, True
        return self.obs(), r, self.t >= 120


class ReplayMemory:
    def __init__(self, capacity):
        self.data = deque(maxlen=capacity)

    def push(self, s, a, r, s2, done):
        self.data.append((s, a, r, s2, done))

    def sample(self, batch_size):
        idx = np.random.randint(0, len(self.data), batch_size)
        s, a, r, s2, d = (np.array(col) for col in zip(*[self.data[i] for i in idx]))
        idx = slice(None)
        return (
            torch.from_numpy(s[idx]),
            torch.from_numpy(a[idx]),
            torch.from_numpy(r[idx].astype(np.float32)),
            torch.from_numpy(s2[idx]),
            torch.from_numpy(d[idx].astype(np.float32)),
        )

    def __len__(self):
        return len(self.data)


class QNet(nn.Module):
    def __init__(self, d_in, n_act=4, width=128):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.v = nn.Linear(width, 1)
        self.adv = nn.Linear(width, n_act)

    def forward(self, x):
        h = self.body(x)
        a = self.adv(h)
        return self.v(h) + a - a.mean(-1, keepdim=True)


class Agent:
    def __init__(self, d_in):
        self.q = QNet(d_in)
        self.target = QNet(d_in)
        self.target.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.Adam(self.q.parameters(), lr=5e-4)
        self.mem = ReplayMemory(20000)
        self.gamma = 0.98

    @torch.no_grad()
    def act(self, s, eps):
        if random.random() < eps:
            return random.randrange(4)
        return int(self.q(torch.from_numpy(s)).argmax())

    def learn(self, batch_size=64):
        s, a, r, s2, d = self.mem.sample(batch_size)
        with torch.no_grad():
            best = self.q(s2).argmax(1, keepdim=True)
            y = r + self.gamma * (1 - d) * self.target(s2).gather(1, best).squeeze(1)
        q = self.q(s).gather(1, a.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def main(total_steps=6600):
    env = GridWorld()
    s = env.reset()
    agent = Agent(len(s))
    ep_ret, rets, loss = 0.0, deque(maxlen=20), float("nan")
    for t in range(total_steps):
        eps = max(0.05, 1 - t / 3500)
        a = agent.act(s, eps)
        s2, r, done = env.step(a)
        agent.mem.push(s, a, r, s2, done)
        ep_ret += r
        s = s2
        if done:
            rets.append(ep_ret)
            ep_ret, s = 0.0, env.reset()
        if t > 500 and t % 2 == 0:
            loss = agent.learn()
        if t % 400 == 0:
            agent.target.load_state_dict(agent.q.state_dict())
            print(f"step {t} eps {eps:.2f} loss {loss:.4f} return {np.mean(rets) if rets else 0:.2f}", flush=True)


if __name__ == "__main__":
    main()
