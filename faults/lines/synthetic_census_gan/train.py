import time

import numpy as np
import torch
import torch.nn as nn


def census_rows(n, seed=13):
    """Ages, incomes and one-hot groups with some correlation."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 6, n)
    age = np.clip(rng.normal(30 + 5 * group, 9), 16, 95) / 50 - 1
    income = np.log1p(rng.gamma(2 + group, 9000)) / 6 - 1
    hours = np.clip(rng.normal(36, 8, n), 0, 80) / 40 - 1
    latent = rng.normal(size=(n, 5))
    mix = np.tanh(latent @ rng.normal(size=(5, 25)))
    rows = np.column_stack([age, income, hours, mix, np.eye(6)[group]])
    return torch.from_numpy(rows.astype(np.float32))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + torch.relu(self.norm(self.lin(x)))


class Generator(nn.Module):
    def __init__(self, noise, columns, width=448, depth=4):
        super().__init__()
        self.noise = noise
        self.net = nn.Sequential(
            nn.Linear(noise, width), nn.ReLU(),
            *[Residual(width) for _ in range(depth)],
            nn.Linear(width, columns),
        )
        self.numeric = columns - 6

    def forward(self, n):
        out = self.net(torch.randn(n, self.noise))
        num, cat = out[:, : self.numeric], out[:, self.numeric:]
        return torch.cat([torch.tanh(num), torch.softmax(cat, 1)], 1)


def make_critic(columns, width=128):
    return nn.Sequential(
        nn.Linear(columns, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, 1),
    )


class WassersteinTrainer:
    critic_rounds = 5
    clip = 0.05
    batch = 256

    def __init__(self, rows):
        self.rows = rows
        self.g = Generator(32, rows.shape[1])
        self.c = make_critic(rows.shape[1])
        self.opt_g = torch.optim.RMSprop(self.g.parameters(), lr=1e-4)
        self.opt_c = torch.optim.RMSprop(self.c.parameters(), lr=2e-4)
        self.gap = 0.0

    def real(self):
        return self.rows[torch.randint(0, len(self.rows), (self.batch,))]

    def critic_step(self):
        fake = self.g(self.batch)
        loss = self.c(fake).mean() - self.c(self.real()).mean()
        self.opt_c.zero_grad(set_to_none=True)
        loss.backward()
        self.opt_c.step()
        with torch.no_grad():
            torch._foreach_clamp_min_(list(self.c.parameters()), -self.clip)
            torch._foreach_clamp_max_(list(self.c.parameters()), self.clip)
        return loss

    def generator_step(self):
        for p in self.c.parameters():
            p.requires_grad_(False)
        loss = -self.c(self.g(self.batch)).mean()
        self.opt_g.zero_grad(set_to_none=True)
        loss.backward()
        self.opt_g.step()
        for p in self.c.parameters():
            p.requires_grad_(True)

    def round(self):
        for _ in range(self.critic_rounds):
            loss = self.critic_step()
        self.generator_step()
        self.gap = 0.95 * self.gap - 0.05 * loss.item()


if __name__ == "__main__":
    torch.manual_seed(13)
    trainer = WassersteinTrainer(census_rows(20_000))
    steps = 0
    start = time.monotonic()
    while time.monotonic() - start < 12:
        trainer.round()
        steps += 1
        if steps % 50 == 0:
            print(f"round {steps}: gap {trainer.gap:.4f}", flush=True)
    print("steps:", steps)
