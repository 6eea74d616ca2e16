"""Seamless texture GAN (DCGAN family, hinge loss)."""
import time

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(71)
device = "cuda" if torch.cuda.is_available() else "cpu"
gpu = device == "cuda"
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")

Z = 128 if gpu else 16
CH = 128 if gpu else 8
SIZE = 64
BATCH = 512 if gpu else 4
TEXTURES = 20_000 if gpu else 32


def up(cin, cout):
    return nn.Sequential(nn.ConvTranspose2d(cin, cout, 4, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


def down(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(Z, 8 * CH * 16)
        self.net = nn.Sequential(up(8 * CH, 4 * CH), up(4 * CH, 2 * CH), up(2 * CH, CH), nn.ConvTranspose2d(CH, 3, 4, 2, 1))

    def forward(self, z):
        h = self.start(z).view(-1, 8 * CH, 4, 4).contiguous(memory_format=torch.channels_last)
        return torch.tanh(self.net(h))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(down(3, CH), down(CH, 2 * CH), down(2 * CH, 4 * CH), down(4 * CH, 8 * CH))
        self.out = nn.Linear(8 * CH * 16, 1)

    def forward(self, x):
        return self.out(self.net(x).flatten(1)).squeeze(1)


def textures():
    grid = torch.linspace(0, 6.2832, SIZE, device=device)
    out = torch.empty(TEXTURES, 3, SIZE, SIZE, dtype=torch.bfloat16, device=device)
    for part in out.split(1000):
        f = torch.randint(1, 9, (len(part), 3, 2, 1, 1), device=device)
        wave = torch.sin(f[:, :, 0] * grid.view(1, 1, -1, 1) + f[:, :, 1] * grid)
        part.copy_(wave + 0.05 * torch.randn_like(wave))
    return out.contiguous(memory_format=torch.channels_last)


def set_grad(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def main():
    data = textures()
    gen = Generator().to(device, memory_format=torch.channels_last)
    critic = Critic().to(device, memory_format=torch.channels_last)
    g_opt = torch.optim.AdamW(gen.parameters(), lr=1e-4, betas=(0.0, 0.99), fused=True)
    c_opt = torch.optim.AdamW(critic.parameters(), lr=2e-4, betas=(0.0, 0.99), fused=True)
    amp = lambda: torch.autocast(device, dtype=torch.bfloat16)

    t0, it = time.monotonic(), 0
    while time.monotonic() - t0 < 18:
        real = data[torch.randint(0, TEXTURES, (BATCH,), device=device)]
        set_grad(critic, True)
        with amp():
            with torch.no_grad():
                fake = gen(torch.randn(BATCH, Z, device=device))
            c_loss = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake)).mean()
        c_opt.zero_grad(set_to_none=True)
        c_loss.backward()
        c_opt.step()

        set_grad(critic, False)
        with amp():
            g_loss = -critic(gen(torch.randn(BATCH, Z, device=device))).mean()
        g_opt.zero_grad(set_to_none=True)
        g_loss.backward()
        g_opt.step()

        it += 1
        if it % 100 == 0:
            print(f"it {it}: critic {c_loss.item():.3f} generator {g_loss.item():.3f}")
    print(f"{it} iterations, {it * BATCH / (time.monotonic() - t0):.0f} images/s")


if __name__ == "__main__":
    main()
