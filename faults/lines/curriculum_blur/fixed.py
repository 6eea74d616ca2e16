"""Deblurring network, trained in short rounds with a validation probe after every round."""
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    patch: int = 32
    images: int = 2000
    batch: int = 16
    round_steps: int = 4
    seconds: float = 14.0


class Patches(Dataset):
    def __init__(self, cfg, seed):
        g = torch.Generator().manual_seed(seed)
        self.sharp = torch.rand(cfg.images, 3, cfg.patch, cfg.patch, generator=g)

    def __len__(self):
        return len(self.sharp)

    def __getitem__(self, i):
        sharp = self.sharp[i]
        blurred = F.avg_pool2d(sharp.unsqueeze(0), 3, stride=1, padding=1).squeeze(0)
        return blurred, sharp


class Deblur(nn.Module):
    def __init__(self, c=32, depth=4):
        super().__init__()
        mid = []
        for _ in range(depth):
            mid += [nn.Conv2d(c, c, 3, padding=1), nn.ReLU()]
        self.net = nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.ReLU(), *mid, nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, x):
        return x + self.net(x)


def make_loader(data, cfg, device):
    return DataLoader(data, batch_size=cfg.batch, shuffle=True, num_workers=2, drop_last=True,
                      pin_memory=device == "cuda", persistent_workers=True)


def batches(loader):
    while True:
        yield from loader


def train_round(model, opt, stream, cfg, device):
    for _ in range(cfg.round_steps):
        blurred, sharp = next(stream)
        blurred, sharp = blurred.to(device, non_blocking=True), sharp.to(device, non_blocking=True)
        loss = F.l1_loss(model(blurred), sharp)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.detach()


@torch.no_grad()
def probe(model, blurred, sharp):
    return F.mse_loss(model(blurred), sharp)


def main():
    cfg = Settings()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data, held_out = Patches(cfg, 1), Patches(Settings(images=4), 2)
    vx, vy = (torch.stack(t).to(device) for t in zip(*(held_out[i] for i in range(4))))
    model = Deblur().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    stream = batches(make_loader(data, cfg, device))
    rounds, t0 = 0, time.perf_counter()
    while time.perf_counter() - t0 < cfg.seconds:
        loss = train_round(model, opt, stream, cfg, device)
        rounds += 1
        if rounds % 8 == 0:
            print(f"round {rounds}: train {loss.item():.4f} held-out {probe(model, vx, vy).item():.4f}")
    dt = time.perf_counter() - t0
    steps = rounds * cfg.round_steps
    print(f"{steps / dt:.2f} steps/s, {steps * cfg.batch / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
