import pathlib
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image


def lattices(n, size, seed):
    """Interference patterns of three plane waves."""
    g = torch.Generator().manual_seed(seed)
    axis = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    base = torch.rand(n, 1, 1, generator=g) * 3.14
    pitch = 6 + 8 * torch.rand(n, 1, 1, generator=g)
    total = torch.zeros(n, size, size)
    for k in range(3):
        a = base + k * 3.14159 / 3
        total += torch.cos(pitch * (torch.cos(a) * xx + torch.sin(a) * yy))
    return (total / 3).unsqueeze(1)


def generator(z, w):
    return nn.Sequential(
        nn.ConvTranspose2d(z, 4 * w, 4, 1, 0, bias=False), nn.BatchNorm2d(4 * w), nn.ReLU(True),
        nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * w), nn.ReLU(True),
        nn.ConvTranspose2d(2 * w, w, 4, 2, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU(True),
        nn.ConvTranspose2d(w, 1, 4, 2, 1), nn.Tanh())


def discriminator(w):
    return nn.Sequential(
        nn.Conv2d(1, w, 4, 2, 1), nn.LeakyReLU(0.2, True),
        nn.Conv2d(w, 2 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * w), nn.LeakyReLU(0.2, True),
        nn.Conv2d(2 * w, 4 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * w), nn.LeakyReLU(0.2, True),
        nn.Conv2d(4 * w, 1, 4, 1, 0))


def set_trainable(net, flag):
    for p in net.parameters():
        p.requires_grad_(flag)


class Crystals:
    z_dim = 32

    def __init__(self, data, batch, folder):
        self.data, self.batch, self.folder = data, batch, folder
        self.g, self.d = generator(self.z_dim, 24), discriminator(24)
        for net in (self.g, self.d):
            net.apply(self.init)
        self.opt_g = torch.optim.Adam(self.g.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(self.d.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.fixed = torch.randn(16, self.z_dim, 1, 1)
        self.history = {"d": [], "g": []}

    @staticmethod
    def init(m):
        if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(m.weight, 0.0, 0.02)

    def step(self):
        real = self.data[torch.randint(0, len(self.data), (self.batch,))]
        fake = self.g(torch.randn(self.batch, self.z_dim, 1, 1))

        score_real, score_fake = self.d(real), self.d(fake.detach())
        loss_d = F.softplus(-score_real).mean() + F.softplus(score_fake).mean()
        self.opt_d.zero_grad(set_to_none=True)
        loss_d.backward()
        self.opt_d.step()

        set_trainable(self.d, False)
        loss_g = F.softplus(-self.d(fake)).mean()
        self.opt_g.zero_grad(set_to_none=True)
        loss_g.backward()
        self.opt_g.step()
        set_trainable(self.d, True)

        self.history["d"].append(loss_d.item())
        self.history["g"].append(loss_g.item())

    @torch.no_grad()
    def sheet(self, step):
        self.g.eval()
        tiles = self.g(self.fixed).squeeze(1).view(4, 4, 32, 32).permute(0, 2, 1, 3).reshape(128, 128)
        self.g.train()
        pixels = ((tiles + 1) * 127.5).numpy().astype(np.uint8)
        Image.fromarray(pixels).save(self.folder / f"sheet_{step:05d}.png")


def main():
    torch.manual_seed(201)
    data = lattices(2000, 32, seed=201)
    with tempfile.TemporaryDirectory() as tmp:
        gan = Crystals(data, 32, pathlib.Path(tmp))
        steps = 0
        start = time.monotonic()
        while time.monotonic() - start < 12:
            gan.step()
            steps += 1
            if steps % 200 == 0:
                gan.sheet(steps)
                print(f"step {steps} d {np.mean(gan.history['d'][-50:]):.3f} g {np.mean(gan.history['g'][-50:]):.3f}")
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
