"""Beta-VAE with a warm-up of the KL weight, compiled."""
import time

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(13)
device = "cuda" if torch.cuda.is_available() else "cpu"
GPU = device == "cuda"
torch.set_float32_matmul_precision("high")
torch._dynamo.config.recompile_limit = 256

PIXELS = 4096 if GPU else 64
HIDDEN = 4096 if GPU else 64
CODE = 64 if GPU else 8
BATCH = 8192 if GPU else 64
IMAGES = 60_000 if GPU else 1000


class BetaVAE(nn.Module):
    def __init__(self, beta=4.0, warmup=5000):
        super().__init__()
        self.beta, self.warmup = beta, warmup
        self.register_buffer("n_calls", torch.zeros(()))
        self.enc = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU())
        self.stats = nn.Linear(HIDDEN, 2 * CODE)
        self.dec = nn.Sequential(
            nn.Linear(CODE, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, PIXELS))

    def forward(self, x):
        mu, logvar = self.stats(self.enc(x)).float().chunk(2, -1)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        recon = self.dec(z)
        nll = F.mse_loss(recon.float(), x, reduction="none").sum(-1)
        kl = 0.5 * (mu.square() + logvar.exp() - 1 - logvar).sum(-1)
        weight = self.beta * (self.n_calls / self.warmup).clamp(max=1.0)
        self.n_calls += 1
        return (nll + weight * kl).mean()


def images():
    proto = torch.rand(10, PIXELS, device=device)
    which = torch.randint(0, 10, (IMAGES,), device=device)
    return (proto[which] + 0.1 * torch.randn(IMAGES, PIXELS, device=device)).clamp_(0, 1)


def train_step(model, opt, x):
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = model(x)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss.detach()


def main():
    data = images()
    vae = BetaVAE().to(device)
    model = torch.compile(vae, backend="inductor" if GPU else "aot_eager")
    opt = torch.optim.AdamW(vae.parameters(), lr=3e-4, fused=True)

    train_step(model, opt, data[:BATCH])  # first call builds the graph
    t0, step = time.monotonic(), 0
    while time.monotonic() - t0 < 18:
        x = data[torch.randint(0, IMAGES, (BATCH,), device=device)]
        loss = train_step(model, opt, x)
        step += 1
        if step % 100 == 0:
            print(f"{step:6d} elbo loss {loss.item():.2f}")
    took = time.monotonic() - t0
    print(f"{step} steps in {took:.1f} s, {step * BATCH / took:,.0f} images/s, loss {loss.item():.2f}")


if __name__ == "__main__":
    main()
