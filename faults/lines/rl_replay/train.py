"""Off-policy Q-learning on a toy vectorized environment with a replay memory."""
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ENVS, OBS, ACTIONS = 64, 512, 6


class ToyEnvs:
    """A batch of independent noisy linear systems."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.mix = (self.rng.standard_normal((ACTIONS, OBS)) * 0.1).astype(np.float32)
        self.state = self.rng.standard_normal((ENVS, OBS), dtype=np.float32)

    def step(self, action):
        noise = self.rng.standard_normal((ENVS, OBS), dtype=np.float32)
        self.state = np.float32(0.9) * self.state + self.mix[action] + np.float32(0.1) * noise
        return self.state, -np.abs(self.state).mean(axis=1)


class ReplayMemory:
    def __init__(self, capacity=400_000):
        self.capacity = capacity
        self.obs = np.empty((0, OBS), dtype=np.float32)
        self.nxt = np.empty((0, OBS), dtype=np.float32)
        self.act = np.empty((0,), dtype=np.int64)
        self.rew = np.empty((0,), dtype=np.float32)

    def push(self, obs, act, rew, nxt):
        self.obs = np.concatenate([self.obs, obs])[-self.capacity:]
        self.nxt = np.concatenate([self.nxt, nxt])[-self.capacity:]
        self.act = np.concatenate([self.act, act])[-self.capacity:]
        self.rew = np.concatenate([self.rew, rew])[-self.capacity:]

    def sample(self, n, rng):
        rows = rng.integers(0, len(self.act), n)
        return [torch.from_numpy(a[rows]) for a in (self.obs, self.act, self.rew, self.nxt)]


def q_network(width=384):
    return nn.Sequential(nn.Linear(OBS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, width), nn.ReLU(), nn.Linear(width, ACTIONS))


def act(q, obs, eps, rng, device):
    with torch.no_grad():
        greedy = q(torch.from_numpy(obs).to(device)).argmax(1).cpu().numpy()
    explore = rng.random(len(obs)) < eps
    return np.where(explore, rng.integers(0, ACTIONS, len(obs)), greedy)


def train(batch_size=128, gamma=0.97, seconds=14.0):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = np.random.default_rng(1)
    envs, memory = ToyEnvs(), ReplayMemory()
    q, target = q_network().to(device), q_network().to(device)
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=3e-4)
    obs, step, t0 = envs.state, 0, time.perf_counter()
    while time.perf_counter() - t0 < seconds:
        action = act(q, obs, max(0.05, 1 - step / 500), rng, device)
        nxt, rew = envs.step(action)
        memory.push(obs, action, rew, nxt)
        obs = nxt
        o, a, r, n = (t.to(device) for t in memory.sample(batch_size, rng))
        with torch.no_grad():
            goal = r + gamma * target(n).amax(1)
        loss = F.smooth_l1_loss(q(o).gather(1, a[:, None]).squeeze(1), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 100 == 0:
            target.load_state_dict(q.state_dict())
            print(f"step {step} loss {loss.item():.4f} reward {rew.mean():.3f}")
    took = time.perf_counter() - t0
    print(f"{step / took:.2f} steps/s, {step * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    torch.manual_seed(0)
    train()
