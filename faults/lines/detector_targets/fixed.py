"""Train a box regression head on precomputed region features with variable numbers of objects."""
import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 256


class Scenes(Dataset):
    def __init__(self, n=2048, seed=30):
        rng = np.random.default_rng(seed)
        self.scenes = []
        for _ in range(n):
            k = int(rng.integers(2, 9))
            self.scenes.append({
                "features": torch.from_numpy(rng.standard_normal((16, FEATURES), dtype=np.float32)),
                "boxes": torch.from_numpy(rng.random((k, 4), dtype=np.float32)),
                "classes": torch.from_numpy(rng.integers(0, 20, k)),
                "areas": torch.from_numpy(rng.random(k, dtype=np.float32)),
                "crowd": torch.from_numpy(rng.random(k) < 0.1),
            })

    def __len__(self):
        return len(self.scenes)

    def __getitem__(self, i):
        scene = self.scenes[i]
        return scene["features"], {k: v for k, v in scene.items() if k != "features"}


def collate(items):
    targets = [t for _, t in items]
    counts = torch.tensor([len(t["boxes"]) for t in targets])
    merged = {k: torch.cat([t[k] for t in targets]) for k in targets[0]}
    merged["scene"] = torch.repeat_interleave(torch.arange(len(items)), counts)
    return torch.stack([f for f, _ in items]), merged


def to_device(targets, device):
    return {k: v.to(device) for k, v in targets.items()}


def merge(targets):
    return targets["boxes"], targets["classes"], targets["areas"] * ~targets["crowd"], targets["scene"]


class Head(nn.Module):
    def __init__(self, dim=FEATURES, layers=2):
        super().__init__()
        layer = nn.TransformerEncoderLayer(dim, 8, 2 * dim, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.query = nn.Linear(4, dim)
        self.box, self.cls = nn.Linear(dim, 4), nn.Linear(dim, 20)

    def forward(self, features, boxes, scene):
        pooled = self.encoder(features).mean(1)
        h = torch.relu(pooled[scene] + self.query(boxes))
        return self.box(h), self.cls(h)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--seconds", type=float, default=14.0)
    args = ap.parse_args()
    torch.manual_seed(30)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(Scenes(), args.batch, shuffle=True, drop_last=True, collate_fn=collate)
    model = Head().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    step, start, stop = 0, time.perf_counter(), False
    while not stop:
        for features, targets in loader:
            features = features.to(device)
            targets = to_device(targets, device)
            boxes, classes, weight, scene = merge(targets)
            noisy = boxes + 0.05 * torch.randn_like(boxes)
            delta, logits = model(features, noisy, scene.to(device))
            loss = (weight * F.cross_entropy(logits, classes, reduction="none")).mean()
            loss = loss + F.l1_loss(noisy + delta, boxes)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            stop = time.perf_counter() - start > args.seconds
            if stop:
                break
        print(f"step {step} loss {loss.item():.4f}")
    took = time.perf_counter() - start
    print(f"{step / took:.2f} steps/s, {step * args.batch / took:.1f} samples/s")


if __name__ == "__main__":
    main()
