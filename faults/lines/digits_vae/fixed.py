import os
import tempfile
import time

import torch
from torch import nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, n_in=784, hidden=512, latent=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_in)
        )

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


def elbo(recon, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(recon, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum() / len(x)
    return bce + kl


class Experiment:
    def __init__(self, batch_size, save_every, seconds=14.0):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.batch_size = batch_size or (2048 if self.device == "cuda" else 64)
        self.save_every = save_every
        self.seconds = seconds
        self.out_dir = tempfile.mkdtemp(prefix="vae_")
        self.model = VAE().to(self.device)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.data = self.make_digits().to(self.device)
        self.step = 0

    def make_digits(self, n=15000):
        g = torch.Generator().manual_seed(3)
        strokes = (torch.rand(40, 784, generator=g) < 0.08).float()
        use = (torch.rand(n, 40, generator=g) < 0.1).float()
        return (use @ strokes).clamp(max=1.0)

    def save(self):
        path = os.path.join(self.out_dir, "last.pt")
        torch.save({
            "step": self.step,
            "model": self.model.state_dict(),
            "opt": self.opt.state_dict(),
        }, path + ".tmp")
        os.replace(path + ".tmp", path)

    def train_step(self):
        idx = torch.randint(0, len(self.data), (self.batch_size,), device=self.device)
        x = self.data[idx]
        recon, mu, logvar = self.model(x)
        loss = elbo(recon, x, mu, logvar)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.step += 1
        return loss.detach()

    def run(self):
        t0 = time.time()
        while time.time() - t0 < self.seconds:
            loss = self.train_step()
            if self.step % self.save_every == 0:
                self.save()
            if self.step % 100 == 0:
                print(f"[{self.step}] -elbo {loss.item():.2f}")
        if self.device == "cuda":
            torch.cuda.synchronize()
        dt = time.time() - t0
        print(f"{self.step / dt:.2f} steps/s, {self.step * self.batch_size / dt:.1f} samples/s")


if __name__ == "__main__":
    torch.manual_seed(0)
    Experiment(batch_size=None, save_every=500).run()
