"""Semi-supervised training: consistency loss on unlabelled spectra next to the labelled batch."""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    """Spectra are stored as int8 to keep the unlabelled pool in memory."""

    def __init__(self, n, bands=128, classes=9, labelled=True, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.values = torch.randint(-100, 100, (n, bands), dtype=torch.int8, generator=g)
        self.labels = torch.randint(0, classes, (n,), generator=g) if labelled else None

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        x = self.values[i].float() / 100
        return x if self.labels is None else (x, self.labels[i])


class SpectralNet(nn.Module):
    def __init__(self, classes=9, c=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, c, 9, padding=4), nn.GroupNorm(4, c), nn.SiLU(),
            nn.Conv1d(c, c, 9, padding=4), nn.GroupNorm(4, c), nn.SiLU(), nn.AvgPool1d(2),
            nn.Conv1d(c, 2 * c, 9, padding=4), nn.GroupNorm(4, 2 * c), nn.SiLU(), nn.AvgPool1d(2))
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(64 * c, 256), nn.SiLU(), nn.Linear(256, classes))

    def forward(self, x):
        return self.fc(self.conv(x.unsqueeze(1)))


def consistency(model, x, sigma):
    with torch.no_grad():
        target = F.softmax(model(x), dim=1)
    noisy = F.log_softmax(model(x + sigma * torch.randn_like(x)), dim=1)
    return F.kl_div(noisy, target, reduction="batchmean")


def train(args):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    labelled = DataLoader(Spectra(3000, seed=1), args.batch, shuffle=True, drop_last=True)
    unlabelled = DataLoader(Spectra(800_000, labelled=False, seed=2), args.batch, shuffle=True, drop_last=True)
    model = SpectralNet().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < args.seconds:
        for x, y in labelled:
            u = next(iter(unlabelled)).to(device)
            x, y = x.to(device), y.to(device)
            loss = F.cross_entropy(model(x), y) + args.weight * consistency(model, u, args.sigma)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            steps += 1
            if time.perf_counter() - start >= args.seconds:
                break
        print(f"step {steps}: loss {loss.item():.4f}")
    took = time.perf_counter() - start
    print(f"{steps / took:.2f} steps/s, {2 * steps * args.batch / took:.1f} samples/s")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=24)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--weight", type=float, default=0.5)
    ap.add_argument("--sigma", type=float, default=0.1)
    ap.add_argument("--seconds", type=float, default=14.0)
    torch.manual_seed(0)
    train(ap.parse_args())
