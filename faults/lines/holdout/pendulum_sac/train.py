import copy
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Pendulum:
    def __init__(self):
        self.reset()

    def reset(self):
        self.angle = (torch.rand(1).item() * 2 - 1) * math.pi
        self.speed = torch.rand(1).item() * 2 - 1
        self.age = 0
        return self.observe()

    def observe(self):
        return [math.cos(self.angle), math.sin(self.angle), self.speed]

    def act(self, torque):
        torque = max(-2.0, min(2.0, torque))
        wrapped = (self.angle + math.pi) % (2 * math.pi) - math.pi
        cost = wrapped**2 + 0.1 * self.speed**2 + 0.001 * torque**2
        self.speed += (15 * math.sin(self.angle) + 3 * torque) * 0.05
        self.speed = max(-8.0, min(8.0, self.speed))
        self.angle += self.speed * 0.05
        self.age += 1
        return self.observe(), -cost, self.age >= 200


class Ring:
    def __init__(self, capacity):
        self.rows = torch.zeros(capacity, 3 + 1 + 1 + 3)
        self.size = self.at = 0

    def push(self, obs, act, rew, nxt):
        self.rows[self.at] = torch.tensor([*obs, act, rew, *nxt])
        self.at = (self.at + 1) % len(self.rows)
        self.size = min(self.size + 1, len(self.rows))

    def draw(self, n):
        return self.rows[torch.randint(0, self.size, (n,))].split([3, 1, 1, 3], 1)


def mlp(a, b, width=320):
    return nn.Sequential(nn.Linear(a, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, b))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(3, 2)

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, -1)
        std = log_std.clamp(-5, 2).exp()
        raw = mean + std * torch.randn_like(mean)
        logp = -0.5 * ((raw - mean) / std).square() - std.log() - 0.5 * math.log(2 * math.pi)
        squash = 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return 2 * torch.tanh(raw), logp - squash - math.log(2)


class Twin(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = mlp(4, 1), mlp(4, 1)

    def forward(self, obs, act):
        x = torch.cat([obs, act], 1)
        return self.a(x), self.b(x)


class SAC:
    def __init__(self, gamma=0.99, tau=0.005, heat=0.2):
        self.gamma, self.tau, self.heat = gamma, tau, heat
        self.policy, self.critic = Policy(), Twin()
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.opt_p = torch.optim.Adam(self.policy.parameters(), lr=3e-4)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.pairs = list(self.target.parameters()), list(self.critic.parameters())

    def update(self, obs, act, rew, nxt):
        with torch.no_grad():
            a2, logp2 = self.policy(nxt)
            goal = rew + self.gamma * (torch.minimum(*self.target(nxt, a2)) - self.heat * logp2)
        q1, q2 = self.critic(obs, act)
        loss_c = F.mse_loss(q1, goal) + F.mse_loss(q2, goal)
        self.opt_c.zero_grad(set_to_none=True)
        loss_c.backward()
        self.opt_c.step()

        self.critic.requires_grad_(False)
        a, logp = self.policy(obs)
        loss_p = (self.heat * logp - torch.minimum(*self.critic(obs, a))).mean()
        self.opt_p.zero_grad(set_to_none=True)
        loss_p.backward()
        self.opt_p.step()
        self.critic.requires_grad_(True)
        with torch.no_grad():
            torch._foreach_lerp_(*self.pairs, self.tau)
        return loss_c


def main():
    torch.manual_seed(221)
    env, ring, agent = Pendulum(), Ring(50_000), SAC()
    obs = env.reset()
    for _ in range(1000):
        act = torch.rand(1).item() * 4 - 2
        nxt, rew, end = env.act(act)
        ring.push(obs, act, rew, nxt)
        obs = env.reset() if end else nxt
    steps, total, scores = 0, 0.0, []
    start = time.monotonic()
    while time.monotonic() - start < 12:
        with torch.no_grad():
            act = agent.policy(torch.tensor([obs]))[0].item()
        nxt, rew, end = env.act(act)
        ring.push(obs, act, rew, nxt)
        total += rew
        obs = nxt
        if end:
            scores.append(total)
            obs, total = env.reset(), 0.0
        loss = agent.update(*ring.draw(256))
        steps += 1
        if steps % 200 == 0:
            print(f"step {steps}: critic loss {loss.item():.3f}, last game {scores[-1] if scores else 0:.0f}", flush=True)
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
