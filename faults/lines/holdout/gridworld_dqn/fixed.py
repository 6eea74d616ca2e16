import copy
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 8
MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Maze:
    """Walk to the flag, avoid the pits; one-hot planes for agent, flag and pits."""

    def __init__(self, rng):
        self.rng = rng
        self.reset()

    def reset(self):
        cells = self.rng.permutation(SIZE * SIZE)[:8]
        spots = np.stack([cells // SIZE, cells % SIZE], 1)
        self.agent, self.flag, self.pits = spots[0].copy(), spots[1], spots[2:]
        self.left = 40

    def planes(self):
        obs = np.zeros((3, SIZE, SIZE), np.float32)
        obs[0, self.agent[0], self.agent[1]] = 1
        obs[1, self.flag[0], self.flag[1]] = 1
        obs[2, self.pits[:, 0], self.pits[:, 1]] = 1
        return obs

    def act(self, a):
        self.agent = np.clip(self.agent + MOVES[a], 0, SIZE - 1)
        self.left -= 1
        if (self.agent == self.flag).all():
            return 1.0, True
        if (self.agent == self.pits).all(1).any():
            return -1.0, True
        return -0.01, self.left == 0


class Replay:
    def __init__(self, capacity, alpha=0.6, seed=0):
        self.capacity, self.alpha = capacity, alpha
        self.obs = torch.zeros(capacity, 3, SIZE, SIZE)
        self.nxt = torch.zeros(capacity, 3, SIZE, SIZE)
        self.act = torch.zeros(capacity, dtype=torch.long)
        self.rew = torch.zeros(capacity)
        self.end = torch.zeros(capacity)
        self.priority = np.zeros(capacity)
        self.rng = np.random.default_rng(seed)
        self.size = self.head = 0

    def push(self, obs, act, rew, nxt, end, priority=1.0):
        i = self.head
        self.obs[i], self.nxt[i] = torch.from_numpy(obs), torch.from_numpy(nxt)
        self.act[i], self.rew[i], self.end[i] = act, rew, float(end)
        self.priority[i] = priority**self.alpha
        self.head = (i + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, n):
        edges = np.cumsum(self.priority[: self.size])
        draws = self.rng.random(n) * edges[-1]
        idx = np.searchsorted(edges, draws).clip(0, self.size - 1)
        chance = torch.from_numpy(self.priority[idx] / edges[-1]).float()
        idx = torch.from_numpy(idx)
        weight = (self.size * chance) ** -0.4
        return idx, weight / weight.max(), self.obs[idx], self.act[idx], self.rew[idx], self.nxt[idx], self.end[idx]

    def update(self, idx, errors):
        for i, e in zip(idx.tolist(), errors.tolist()):
            self.priority[i] = (e + 1e-3) ** self.alpha


def q_network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * SIZE * SIZE, 128), nn.ReLU(), nn.Linear(128, 4))


def warm_up(env, replay, n, rng):
    """Fills the buffer from a random walk."""
    obs = env.planes()
    for _ in range(n):
        a = int(rng.integers(4))
        rew, end = env.act(a)
        nxt = env.planes()
        replay.push(obs, a, rew, nxt, end)
        if end:
            env.reset()
            nxt = env.planes()
        obs = nxt


def learn(q, target, opt, replay, batch=64, gamma=0.97):
    idx, weight, obs, act, rew, nxt, end = replay.sample(batch)
    with torch.no_grad():
        best = q(nxt).argmax(1, keepdim=True)
        goal = rew + gamma * (1 - end) * target(nxt).gather(1, best).squeeze(1)
    value = q(obs).gather(1, act.unsqueeze(1)).squeeze(1)
    loss = (weight * F.smooth_l1_loss(value, goal, reduction="none")).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    replay.update(idx, (value.detach() - goal).abs())
    return loss.item()


def main(seconds=12, capacity=60_000):
    torch.manual_seed(4)
    rng = np.random.default_rng(4)
    env, replay = Maze(rng), Replay(capacity)
    warm_up(env, replay, capacity, rng)
    q = q_network()
    target = copy.deepcopy(q).requires_grad_(False)
    opt = torch.optim.Adam(q.parameters(), lr=5e-4)

    env.reset()
    steps, wins, games = 0, 0, 0
    obs = env.planes()
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if rng.random() < 0.1:
            a = int(rng.integers(4))
        else:
            with torch.no_grad():
                a = int(q(torch.from_numpy(obs).unsqueeze(0)).argmax())
        rew, end = env.act(a)
        nxt = env.planes()
        replay.push(obs, a, rew, nxt, end)
        if end:
            games, wins = games + 1, wins + (rew > 0)
            env.reset()
            nxt = env.planes()
        obs = nxt
        learn(q, target, opt, replay)
        steps += 1
        if steps % 250 == 0:
            target.load_state_dict(q.state_dict())
    print(f"{wins} of {games} games won")
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
