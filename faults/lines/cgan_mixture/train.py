"""Conditional GAN on 2-D mixtures lifted to 64 dimensions."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 8192 if device == "cuda" else 256
LATENT, DATA, CLASSES = 32, 64, 8
REPORT = 100


def mlp(n_in, hidden, n_out, depth=2):
    layers = [nn.Linear(n_in, hidden), nn.LeakyReLU(0.2)]
    for _ in range(depth):
        layers += [nn.Linear(hidden, hidden), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Linear(hidden, n_out))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(CLASSES, 16)
        self.net = mlp(LATENT + 16, 320, DATA)

    def forward(self, z, y):
        return self.net(torch.cat([z, self.label(y)], dim=1))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(CLASSES, 16)
        self.net = mlp(DATA + 16, 320, 1)

    def forward(self, x, y):
        return self.net(torch.cat([x, self.label(y)], dim=1)).squeeze(1)


def mixture(n=50000):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    angle = 2 * torch.pi * y / CLASSES
    xy = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2, generator=g)
    return xy @ torch.randn(2, DATA, generator=g), y


def main(seconds=14):
    torch.manual_seed(0)
    x, y = (t.to(device) for t in mixture())
    gen, critic = Generator().to(device), Critic().to(device)
    opt_g = torch.optim.Adam(gen.parameters(), lr=2e-4, betas=(0.5, 0.99), fused=True)
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.99), fused=True)
    step, start = 0, time.time()
    while time.time() - start < seconds:
        idx = torch.randint(0, len(y), (BATCH,), device=device)
        real, label = x[idx], y[idx]
        fake = gen(torch.randn(BATCH, LATENT, device=device), label)

        d_loss = F.softplus(-critic(real, label)).mean() + F.softplus(critic(fake.detach(), label)).mean()
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()

        g_loss = F.softplus(-critic(fake, label)).mean()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
        step += 1
        if step % REPORT == 0:
            spread = fake.detach().std().item()
            print(f"step {step} D {d_loss.item():.4f} G {g_loss.item():.4f} spread {spread:.3f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - start
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.0f} samples/s")


if __name__ == "__main__":
    main()
