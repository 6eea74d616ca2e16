"""A small WGAN-style GAN for 2-channel sky maps; steps are counted in iterations, not epochs."""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ITERATIONS = 1_000_000
BATCH = 32
LATENT = 64
SECONDS = 14.0


class SkyMaps(Dataset):
    def __init__(self, n=3000, size=32, seed=3):
        rng = np.random.default_rng(seed)
        self.maps = rng.standard_normal((n, 2, size, size)).astype(np.float32)

    def __len__(self):
        return len(self.maps)

    def __getitem__(self, i):
        m = np.rot90(self.maps[i], k=i % 4, axes=(1, 2))
        return torch.from_numpy(np.tanh(m))


def generator(c=32):
    return nn.Sequential(
        nn.Linear(LATENT, 4 * c * 16), nn.Unflatten(1, (4 * c, 4, 4)), nn.ReLU(),
        nn.ConvTranspose2d(4 * c, 2 * c, 4, 2, 1), nn.BatchNorm2d(2 * c), nn.ReLU(),
        nn.ConvTranspose2d(2 * c, c, 4, 2, 1), nn.BatchNorm2d(c), nn.ReLU(),
        nn.ConvTranspose2d(c, 2, 4, 2, 1), nn.Tanh())


def critic(c=32):
    return nn.Sequential(
        nn.Conv2d(2, c, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(c, 2 * c, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * c, 4 * c, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64 * c, 1))


def real_batches(loader, device):
    while True:
        for batch in loader:
            yield batch.to(device)


def main():
    torch.manual_seed(3)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(SkyMaps(), batch_size=BATCH, shuffle=True, num_workers=2, drop_last=True,
                        persistent_workers=True)
    g, d = generator().to(device), critic().to(device)
    g_opt = torch.optim.RMSprop(g.parameters(), lr=5e-5)
    d_opt = torch.optim.RMSprop(d.parameters(), lr=5e-5)
    real_iter = real_batches(loader, device)

    start = time.perf_counter()
    for it in range(1, ITERATIONS):
        real = next(real_iter)
        fake = g(torch.randn(BATCH, LATENT, device=device))
        d_loss = d(fake.detach()).mean() - d(real).mean()
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        with torch.no_grad():
            for p in d.parameters():
                p.clamp_(-0.01, 0.01)

        if it % 3 == 0:
            g_loss = -d(g(torch.randn(BATCH, LATENT, device=device))).mean()
            g_opt.zero_grad()
            g_loss.backward()
            g_opt.step()
        if it % 60 == 0:
            print(f"it {it} critic {d_loss.item():+.4f} generator {g_loss.item():+.4f}")
        if time.perf_counter() - start > SECONDS:
            break
    took = time.perf_counter() - start
    print(f"{it / took:.2f} steps/s, {it * BATCH / took:.1f} samples/s")


if __name__ == "__main__":
    main()
