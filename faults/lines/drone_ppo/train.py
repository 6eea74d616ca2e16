"""PPO for a swarm of simulated drones; the simulator is vectorised on the device."""
import time

import torch
import torch.nn as nn
from torch.distributions import Normal

torch.manual_seed(33)
device = "cuda" if torch.cuda.is_available() else "cpu"
GPU = device == "cuda"
torch.set_float32_matmul_precision("high")
ENVS, WIDTH, ROLLOUT, EPOCHS, MINI = (32768, 4096, 16, 3, 8) if GPU else (64, 32, 8, 2, 4)
OBS, ACT = 9, 3


class Drones:
    """Point-mass drones that must hover at a goal; finished ones are put back at random."""

    def __init__(self, n):
        self.n = n
        self.pos = torch.randn(n, 3, device=device) * 3
        self.vel = torch.zeros(n, 3, device=device)
        self.goal = torch.randn(n, 3, device=device)
        self.age = torch.randint(0, 200, (n, 1), device=device)

    def obs(self):
        return torch.cat([self.pos, self.vel, self.goal - self.pos], 1)

    def step(self, action):
        self.vel = 0.95 * self.vel + 0.1 * action.clamp(-1, 1)
        self.pos = self.pos + 0.1 * self.vel
        self.age = self.age + 1
        dist = (self.goal - self.pos).norm(dim=1, keepdim=True)
        done = (self.age > 200) | (dist > 10)
        self.pos = torch.where(done, torch.randn_like(self.pos) * 3, self.pos)
        self.vel = torch.where(done, torch.zeros_like(self.vel), self.vel)
        self.age = torch.where(done, torch.zeros_like(self.age), self.age)
        return (-dist - 0.01 * action.square().sum(1, keepdim=True)).squeeze(1), done.squeeze(1).float()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU(),
                                  nn.Linear(WIDTH, WIDTH), nn.SiLU())
        self.head = nn.Linear(WIDTH, ACT + 1)
        self.log_std = nn.Parameter(torch.full((ACT,), -0.5))

    def forward(self, obs):
        with torch.autocast(device, dtype=torch.bfloat16):
            out = self.head(self.body(obs))
        out = out.float()
        return Normal(out[:, :ACT], self.log_std.exp(), validate_args=False), out[:, ACT]


@torch.no_grad()
def collect(env, policy, gamma=0.98, lam=0.95):
    rows = []
    for _ in range(ROLLOUT):
        obs = env.obs()
        dist, value = policy(obs)
        action = dist.sample()
        reward, done = env.step(action)
        rows.append((obs, action, dist.log_prob(action).sum(1), value, reward, done))
    last = policy(env.obs())[1]
    obs, action, logp, value, reward, done = (torch.stack(c) for c in zip(*rows))
    adv, running = torch.empty_like(reward), torch.zeros_like(last)
    for t in reversed(range(ROLLOUT)):
        following = value[t + 1] if t + 1 < ROLLOUT else last
        delta = reward[t] + gamma * following * (1 - done[t]) - value[t]
        running = delta + gamma * lam * (1 - done[t]) * running
        adv[t] = running
    flat = [x.flatten(0, 1) for x in (obs, action, logp, adv, adv + value)]
    return flat, reward.mean()


def learn(policy, opt, batch):
    obs, action, old, adv, ret = batch
    adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    for _ in range(EPOCHS):
        for idx in torch.randperm(len(obs), device=device).chunk(MINI):
            dist, value = policy(obs[idx])
            ratio = (dist.log_prob(action[idx]).sum(1) - old[idx]).exp()
            a = adv[idx]
            surrogate = torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
            loss = -surrogate + 0.5 * (value - ret[idx]).square().mean() - 0.003 * dist.entropy().mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            opt.step()


def main():
    env, policy = Drones(ENVS), Policy().to(device)
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-4, fused=True)
    t0, rounds = time.monotonic(), 0
    while time.monotonic() - t0 < 18:
        batch, reward = collect(env, policy)
        learn(policy, opt, batch)
        rounds += 1
        if rounds % 5 == 0:
            print(f"round {rounds}: mean reward {reward.item():.3f}")
    print(f"{rounds} rounds, {rounds * ENVS * ROLLOUT / (time.monotonic() - t0):,.0f} transitions/s")


if __name__ == "__main__":
    main()
