import tempfile
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter


@dataclass
class Config:
    latent: int = 24
    batch: int = 64
    lr: float = 1e-3
    beta: float = 0.5
    seed: int = 2024
    seconds: float = 18.0
    n_images: int = 3000


def petals(n, size=32):
    """Procedural flowers: radius modulated by the number of petals."""
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    r, phi = (xx ** 2 + yy ** 2).sqrt(), torch.atan2(yy, xx)
    k = torch.randint(3, 9, (n, 1, 1)).float()
    shift = torch.rand(n, 1, 1) * 6.28
    outline = 0.55 + 0.3 * torch.cos(k * phi + shift)
    mask = torch.sigmoid((outline - r) * 25)
    colour = torch.rand(n, 3, 1, 1) * 0.8 + 0.2
    return mask.unsqueeze(1) * colour


class VAE(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(3, 24, 4, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(24, 48, 4, 2, 1), nn.LeakyReLU(0.1),
            nn.Conv2d(48, 96, 4, 2, 1), nn.LeakyReLU(0.1), nn.Flatten(),
        )
        self.mu = nn.Linear(96 * 16, latent)
        self.logvar = nn.Linear(96 * 16, latent)
        self.up = nn.Linear(latent, 96 * 16)
        self.dec = nn.Sequential(
            nn.ConvTranspose2d(96, 48, 4, 2, 1), nn.LeakyReLU(0.1), nn.ConvTranspose2d(48, 24, 4, 2, 1),
            nn.LeakyReLU(0.1), nn.ConvTranspose2d(24, 3, 4, 2, 1), nn.Sigmoid(),
        )

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(self.up(z).view(-1, 96, 4, 4)), mu, logvar


def report(writer, model, step, losses, images, recon):
    for key, value in losses.items():
        writer.add_scalar(f"loss/{key}", value, step)
    for name, p in model.named_parameters():
        writer.add_histogram(f"weights/{name}", p, step)
        writer.add_histogram(f"grads/{name}", p.grad, step)
    writer.add_images("recon", torch.cat([images[:8], recon[:8].detach()]), step)


def main(cfg: Config):
    torch.manual_seed(cfg.seed)
    data = petals(cfg.n_images)
    model = VAE(cfg.latent)
    optim = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    writer = SummaryWriter(tempfile.mkdtemp(prefix="flowers_"))
    t0 = time.monotonic()
    step = 0
    while time.monotonic() - t0 < cfg.seconds:
        x = data[torch.randint(0, cfg.n_images, (cfg.batch,))]
        recon, mu, logvar = model(x)
        rec = F.mse_loss(recon, x, reduction="sum") / len(x)
        kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1).mean()
        loss = rec + cfg.beta * kl
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 250 == 0:
            report(writer, model, step, {"rec": rec.item(), "kl": kl.item()}, x, recon)
        step += 1
        if step % 25 == 0:
            print(f"step {step:5d}  rec {rec.item():8.3f}  kl {kl.item():7.3f}")
    writer.close()
    took = time.monotonic() - t0
    print(f"done after {took:.1f} s: {step / took:.2f} steps/s")


if __name__ == "__main__":
    main(Config())
