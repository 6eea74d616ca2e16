"""DCGAN on synthetic galaxy cutouts."""
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(314)
Z, BATCH, LIMIT = 48, 64, 18.0


def galaxies(n, size=32):
    grid = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    angle = torch.rand(n, 1, 1) * 3.14
    q = 0.3 + 0.7 * torch.rand(n, 1, 1)
    u = x * angle.cos() + y * angle.sin()
    v = (-x * angle.sin() + y * angle.cos()) / q
    r = (u ** 2 + v ** 2).sqrt()
    arms = 1 + 0.5 * torch.cos(2 * torch.atan2(v, u) + 9 * r)
    return (2 * torch.exp(-4 * r) * arms - 0.8 + 0.05 * torch.randn(n, size, size)).clamp(-1, 1).unsqueeze(1)


class Generator(nn.Module):
    def __init__(self, w=48):
        super().__init__()
        self.fc = nn.Linear(Z, 4 * w * 16)
        self.net = nn.Sequential(
            nn.BatchNorm2d(4 * w), nn.ReLU(),
            nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1), nn.BatchNorm2d(2 * w), nn.ReLU(),
            nn.ConvTranspose2d(2 * w, w, 4, 2, 1), nn.BatchNorm2d(w), nn.ReLU(),
            nn.ConvTranspose2d(w, 1, 4, 2, 1), nn.Tanh(),
        )

    def forward(self, z):
        return self.net(self.fc(z).view(len(z), -1, 4, 4))


class Critic(nn.Module):
    def __init__(self, w=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, w, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(w, 2 * w, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * w, 4 * w, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Flatten(), nn.Linear(4 * w * 16, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def critic_step(gen, critic, opt, real):
    with torch.no_grad():
        fake = gen(torch.randn(len(real), Z))
    loss = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()


def generator_step(gen, critic, opt):
    critic.requires_grad_(False)
    loss = -critic(gen(torch.randn(BATCH, Z))).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    critic.requires_grad_(True)
    return loss.detach()


@torch.no_grad()
def average(target, source, decay=0.99):
    params = list(source.parameters())
    torch._foreach_lerp_(list(target.parameters()), params, 1 - decay)
    for b_t, b_s in zip(target.buffers(), source.buffers()):
        b_t.copy_(b_s)


sky = galaxies(3000)
generator, critic = Generator(), Critic()
smooth = copy.deepcopy(generator).requires_grad_(False)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.99))
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.99))
fixed_noise = torch.randn(16, Z)

t0 = time.monotonic()
n = 0
while time.monotonic() - t0 < LIMIT:
    real = sky[torch.randint(0, len(sky), (BATCH,))]
    loss_c = critic_step(generator, critic, opt_c, real)
    loss_g = generator_step(generator, critic, opt_g)
    average(smooth, generator)
    n += 1
    if n % 25 == 0:
        print(f"iter {n}  critic {loss_c.item():.3f}  generator {loss_g.item():.3f}")
    if n % 200 == 0:
        with torch.no_grad():
            print("   brightness of samples:", round(smooth(fixed_noise).mean().item(), 4))
print(f"{n} iterations, {n / (time.monotonic() - t0):.2f} it/s")
