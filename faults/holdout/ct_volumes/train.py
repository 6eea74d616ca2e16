"""CT volume classification. Volumes are float32 in memory, cut at random offsets by the loader's workers."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

options = {
    "epochs": 6,
    "volumes": 2048,
    "scans": 48,
    "side": 96,
    "cut": 80,
    "batch_size": 32,
    "num_workers": 8,
    "pin_memory": False,
    "seed": 14,
}


class CtCuts(Dataset):
    def __init__(self, opt):
        g = torch.Generator().manual_seed(opt["seed"])
        side = opt["side"]
        self.scans = torch.randn(opt["scans"], 1, side, side, side, generator=g)
        self.label = torch.randint(0, 2, (opt["scans"],), generator=g)
        self.scans += 0.3 * self.label.view(-1, 1, 1, 1, 1)
        self.count, self.cut, self.room = opt["volumes"], opt["cut"], side - opt["cut"]

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        z, y, x = torch.randint(0, self.room, (3,)).tolist()
        n = i % len(self.scans)
        return self.scans[n, :, z:z + self.cut, y:y + self.cut, x:x + self.cut], self.label[n]


class VolumeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv3d(1, 64, 4, stride=4)
        self.body = nn.Sequential(
            nn.Conv3d(64, 256, 3, padding=1), nn.ReLU(),
            *(layer for _ in range(4) for layer in (nn.Conv3d(256, 256, 3, padding=1), nn.ReLU())),
        )
        self.head = nn.Linear(256, 2)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3, 4)))


def train_one_epoch(model, loader, optimizer, device):
    total = torch.zeros((), device=device)
    for volume, label in loader:
        volume = volume.to(device, non_blocking=True)
        label = label.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(volume), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


def main(opt):
    torch.manual_seed(opt["seed"])
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda:0")
    loader = DataLoader(CtCuts(opt), batch_size=opt["batch_size"], shuffle=True, num_workers=opt["num_workers"],
                        pin_memory=opt["pin_memory"], persistent_workers=True, prefetch_factor=2)
    model = VolumeNet().to(device, memory_format=torch.channels_last_3d)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for epoch in range(opt["epochs"]):
        start = time.perf_counter()
        loss = train_one_epoch(model, loader, optimizer, device)
        print(f"epoch {epoch}: {loss:.4f} ({time.perf_counter() - start:.2f}s)", flush=True)


if __name__ == "__main__":
    main(options)
