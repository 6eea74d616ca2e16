"""Advantage actor-critic for robots that fetch boxes in a grid warehouse."""
import random
import time
from collections import deque

import torch
from torch import nn
from torch.distributions import Categorical

SIZE, N_ENVS, HORIZON, GAMMA = 8, 32, 16, 0.97
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


class Warehouse:
    def __init__(self, seed):
        self.rnd = random.Random(seed)
        self.reset()

    def reset(self):
        cells = [(r, c) for r in range(SIZE) for c in range(SIZE)]
        self.robot, self.box, *self.shelves = self.rnd.sample(cells, 10)
        self.t = 0
        return self.observe()

    def observe(self):
        obs = torch.zeros(3, SIZE, SIZE)
        obs[0, self.robot[0], self.robot[1]] = 1
        obs[1, self.box[0], self.box[1]] = 1
        rows, cols = zip(*self.shelves)
        obs[2, list(rows), list(cols)] = 1
        return obs

    def step(self, action):
        r, c = self.robot[0] + MOVES[action][0], self.robot[1] + MOVES[action][1]
        self.t += 1
        reward = -0.02
        if 0 <= r < SIZE and 0 <= c < SIZE and (r, c) not in self.shelves:
            self.robot = (r, c)
        else:
            reward -= 0.05
        done = self.robot == self.box or self.t >= 50
        if self.robot == self.box:
            reward += 1.0
        return (self.reset() if done else self.observe()), reward, done


class ActorCritic(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Flatten(),
            nn.Linear(16 * SIZE * SIZE, width), nn.ReLU(),
        )
        self.pi = nn.Linear(width, len(MOVES))
        self.v = nn.Linear(width, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


@torch.no_grad()
def rollout(policy, envs, current):
    obs = torch.zeros(HORIZON, N_ENVS, 3, SIZE, SIZE)
    acts = torch.zeros(HORIZON, N_ENVS, dtype=torch.long)
    rews, dones = torch.zeros(HORIZON, N_ENVS), torch.zeros(HORIZON, N_ENVS)
    for t in range(HORIZON):
        obs[t] = torch.stack(current)
        acts[t] = policy(obs[t])[0].sample()
        results = [env.step(a) for env, a in zip(envs, acts[t].tolist())]
        current[:] = [r[0] for r in results]
        rews[t] = torch.tensor([r[1] for r in results])
        dones[t] = torch.tensor([float(r[2]) for r in results])
    value = policy(torch.stack(current))[1]
    returns = torch.zeros(HORIZON, N_ENVS)
    for t in reversed(range(HORIZON)):
        value = rews[t] + GAMMA * value * (1 - dones[t])
        returns[t] = value
    return obs.flatten(0, 1), acts.flatten(), returns.flatten(), rews.sum().item() / N_ENVS


def main(limit=18.0):
    torch.manual_seed(70)
    envs = [Warehouse(seed) for seed in range(N_ENVS)]
    current = [env.reset() for env in envs]
    policy = ActorCritic()
    opt = torch.optim.RMSprop(policy.parameters(), lr=7e-4, alpha=0.99)
    recent = deque(maxlen=20)
    t0, frames, update = time.monotonic(), 0, 0
    while time.monotonic() - t0 < limit:
        obs, acts, returns, score = rollout(policy, envs, current)
        dist, value = policy(obs)
        adv = returns - value
        actor = -(dist.log_prob(acts) * adv.detach()).mean()
        loss = actor + 0.5 * adv.pow(2).mean() - 0.01 * dist.entropy().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        opt.step()
        recent.append(score)
        update += 1
        frames += HORIZON * N_ENVS
        if update % 10 == 0:
            print(f"update {update} frames {frames} mean reward {sum(recent) / len(recent):.3f}")
    print(f"{frames / (time.monotonic() - t0):.1f} frames/s")


if __name__ == "__main__":
    main()
