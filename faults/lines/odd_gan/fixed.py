"""GAN on 32px synthetic textures, two optimizers."""
import os
import tempfile
import time

import torch
from torch import nn
from torchvision.utils import save_image

DEV = "cuda" if torch.cuda.is_available() else "cpu"
Z, SIZE = 64, 32


def textures(n, generator):
    xs = torch.linspace(0, 1, SIZE)
    freq = torch.rand(n, 2, generator=generator) * 20 + 4
    phase = torch.rand(n, 1, 1, generator=generator) * 6.28
    img = torch.sin(freq[:, :1, None] * xs[None, :, None] + freq[:, 1:, None] * xs[None, None, :] + phase)
    return img[:, None]


class Generator(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w
        self.fc = nn.Linear(Z, 2 * w * 64)
        self.net = nn.Sequential(nn.BatchNorm2d(2 * w), nn.ReLU(), nn.ConvTranspose2d(2 * w, w, 4, 2, 1),
                                 nn.BatchNorm2d(w), nn.ReLU(), nn.ConvTranspose2d(w, 1, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(self.fc(z).view(-1, 2 * self.w, 8, 8))


def discriminator(w):
    return nn.Sequential(nn.Conv2d(1, w, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(w, 2 * w, 4, 2, 1),
                         nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2 * w * 64, 1))


def main():
    torch.manual_seed(0)
    out = tempfile.mkdtemp()
    w, batch = (256, 256) if DEV == "cuda" else (8, 16)
    data = textures(2048, torch.Generator().manual_seed(0)).to(DEV)
    G, D = Generator(w).to(DEV), discriminator(w).to(DEV)
    opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
    fixed_z = torch.randn(64, Z, device=DEV)
    bce = nn.functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(batch, 1, device=DEV), torch.zeros(batch, 1, device=DEV)
    step, start = 0, time.time()
    while time.time() - start < 14:
        real = data[torch.randint(0, len(data), (batch,), device=DEV)]
        fake = G(torch.randn(batch, Z, device=DEV))

        d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()

        g_loss = bce(D(fake), ones)
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()

        step += 1
        if step % 500 == 0:
            with torch.no_grad():
                grid = G(fixed_z).cpu() * 0.5 + 0.5
            save_image(grid, os.path.join(out, f"sample_{step % 100:05d}.png"), nrow=8)
        if step % 200 == 0:
            print(f"step {step} d {d_loss.item():.3f} g {g_loss.item():.3f}")
    if DEV == "cuda":
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
