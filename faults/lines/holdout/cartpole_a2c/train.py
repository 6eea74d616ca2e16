"""Advantage actor-critic on a built-in cart-pole simulator with several environments."""
import math
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Settings:
    seed: int = 4
    n_envs: int = 24
    rollout: int = 32
    updates: int = 220
    gamma: float = 0.99
    lr: float = 2e-3
    entropy: float = 0.01


class CartPole:
    def __init__(self, rng):
        self.rng = rng
        self.reset()

    def reset(self):
        self.state = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
        self.age = 0
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(angle), math.sin(angle)
        temp = (force + 0.05 * spin * spin * sin) / 1.1
        angular = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        linear = temp - 0.05 * angular * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * linear, angle + 0.02 * spin, spin + 0.02 * angular]
        self.age += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.209
        return self.state, 1.0, fallen or self.age >= 500


class ActorCritic(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.policy = nn.Linear(hidden, 2)
        self.value = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.policy(h), self.value(h).squeeze(-1)


class Agent:
    def __init__(self, cfg):
        self.cfg = cfg
        rng = random.Random(cfg.seed)
        torch.manual_seed(cfg.seed)
        self.envs = [CartPole(rng) for _ in range(cfg.n_envs)]
        self.obs = np.array([env.state for env in self.envs], dtype=np.float32)
        self.net = ActorCritic()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=cfg.lr)
        self.episode_lengths = []

    @torch.no_grad()
    def collect(self):
        cfg = self.cfg
        observations = np.zeros((cfg.rollout, cfg.n_envs, 4), dtype=np.float32)
        actions = np.zeros((cfg.rollout, cfg.n_envs), dtype=np.int64)
        rewards = np.zeros((cfg.rollout, cfg.n_envs), dtype=np.float32)
        dones = np.zeros((cfg.rollout, cfg.n_envs), dtype=np.float32)
        for t in range(cfg.rollout):
            observations[t] = self.obs
            for i, env in enumerate(self.envs):
                logits, _ = self.net(torch.from_numpy(self.obs[i]))
                action = torch.distributions.Categorical(logits=logits).sample().item()
                state, reward, done = env.step(action)
                if done:
                    self.episode_lengths.append(env.age)
                    state = env.reset()
                actions[t, i], rewards[t, i], dones[t, i] = action, reward, done
                self.obs[i] = state
        _, bootstrap = self.net(torch.from_numpy(self.obs))
        returns = np.zeros_like(rewards)
        running = bootstrap.numpy()
        for t in reversed(range(cfg.rollout)):
            running = rewards[t] + cfg.gamma * running * (1.0 - dones[t])
            returns[t] = running
        return (torch.from_numpy(a).flatten(0, 1) for a in (observations, actions, returns))

    def update(self, obs, actions, returns):
        logits, values = self.net(obs)
        advantage = returns - values.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        distribution = torch.distributions.Categorical(logits=logits)
        policy_loss = -(distribution.log_prob(actions) * advantage).mean()
        value_loss = F.smooth_l1_loss(values, returns)
        loss = policy_loss + 0.5 * value_loss - self.cfg.entropy * distribution.entropy().mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
        self.optimizer.step()
        return loss.detach()

    def learn(self):
        for update in range(1, self.cfg.updates + 1):
            loss = self.update(*self.collect())
            if update % 20 == 0:
                recent = self.episode_lengths[-50:]
                print(f"update {update:3d} loss {loss.item():8.4f} mean episode {sum(recent) / max(1, len(recent)):.1f}")


if __name__ == "__main__":
    Agent(Settings()).learn()
