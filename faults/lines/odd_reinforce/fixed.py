"""REINFORCE on a batch of small point-mass environments stepped in Python."""
import time

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

DEV = "cuda" if torch.cuda.is_available() else "cpu"
ENVS, HORIZON, GAMMA = 32, 200, 0.98


class PointMass:
    """ENVS copies of a 2-D point that has to reach the origin."""

    def __init__(self, n, seed=0):
        self.rng = np.random.default_rng(seed)
        self.n = n
        self.moves = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32) * 0.05

    def reset(self):
        self.pos = self.rng.uniform(-1, 1, (self.n, 2)).astype(np.float32)
        self.vel = np.zeros((self.n, 2), dtype=np.float32)
        return np.concatenate([self.pos, self.vel], 1)

    def step(self, action):
        self.vel = 0.9 * self.vel + self.moves[action]
        self.pos = np.clip(self.pos + 0.2 * self.vel, -2, 2)
        reward = -np.sqrt((self.pos ** 2).sum(1))
        return np.concatenate([self.pos, self.vel], 1), reward


def discounted(rewards):
    table = np.array(rewards, dtype=np.float32)
    for t in range(len(table) - 2, -1, -1):
        table[t] += GAMMA * table[t + 1]
    return torch.from_numpy(table).to(DEV)


def main():
    torch.manual_seed(0)
    env = PointMass(ENVS)
    policy = nn.Sequential(nn.Linear(4, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 5)).to(DEV)
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
    step, start, average = 0, time.time(), 0.0
    while time.time() - start < 14:
        obs = env.reset()
        log_probs, rewards, entropies = [], [], []
        for _ in range(HORIZON):
            dist = Categorical(logits=policy(torch.from_numpy(obs).to(DEV)), validate_args=False)
            action = dist.sample()
            obs, reward = env.step(action.cpu().numpy())
            log_probs.append(dist.log_prob(action))
            entropies.append(dist.entropy())
            rewards.append(reward)

        returns = discounted(rewards)
        advantage = (returns - returns.mean(1, keepdim=True)) / (returns.std() + 1e-6)
        loss = -(torch.stack(log_probs) * advantage).mean() - 0.01 * torch.stack(entropies).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        opt.step()
        step += 1
        average = 0.95 * average + 0.05 * float(np.mean(rewards))
        if step % 20 == 0:
            print(f"episode {step} reward {average:.3f}")
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
