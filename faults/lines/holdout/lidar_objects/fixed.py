import random
import time
from dataclasses import dataclass

import torch
from torch import nn

SEED = 11
random.seed(SEED)
torch.manual_seed(SEED)
device = "cuda" if torch.cuda.is_available() else "cpu"
on_gpu = device == "cuda"
torch.set_float32_matmul_precision("high")


@dataclass
class Obj:
    points: torch.Tensor      # (P, 3) around the box centre
    intensity: torch.Tensor   # (P,)
    size: torch.Tensor        # (3,)
    label: torch.Tensor       # ()


def make_objects(n, n_points, n_classes):
    protos = torch.rand(n_classes, 3) * 4 + 0.5
    objs = []
    for _ in range(n):
        c = random.randrange(n_classes)
        size = protos[c] * (0.9 + 0.2 * torch.rand(3))
        pts = (torch.rand(n_points, 3) - 0.5) * size
        objs.append(Obj(pts, torch.rand(n_points), size, torch.tensor(c)))
    return objs


class PointNet(nn.Module):
    def __init__(self, n_classes, width):
        super().__init__()
        self.local = nn.Sequential(
            nn.Linear(4, width), nn.ReLU(inplace=True),
            nn.Linear(width, 2 * width), nn.ReLU(inplace=True),
            nn.Linear(2 * width, 4 * width),
        )
        self.cls = nn.Sequential(nn.Linear(4 * width + 3, width), nn.ReLU(inplace=True), nn.Linear(width, n_classes))

    def forward(self, points, intensity, size):
        feats = self.local(torch.cat([points, intensity.unsqueeze(-1)], -1))
        return self.cls(torch.cat([feats.amax(1), size], -1))


def to_batch(objs):
    parts = (
        torch.stack([o.points for o in objs]),
        torch.stack([o.intensity for o in objs]),
        torch.stack([o.size for o in objs]),
        torch.stack([o.label for o in objs]),
    )
    return tuple((p.pin_memory() if on_gpu else p).to(device, non_blocking=True) for p in parts)


def run(n_classes=12, limit=18.0):
    n, n_points, batch, width = (20000, 256, 512, 256) if on_gpu else (600, 64, 64, 32)
    objs = make_objects(n, n_points, n_classes)
    net = PointNet(n_classes, width).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2, fused=True)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)

    t0, it, seen = time.monotonic(), 0, 0
    while time.monotonic() - t0 < limit:
        picked = random.sample(objs, batch)
        points, intensity, size, label = to_batch(picked)
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = net(points, intensity, size)
            loss = loss_fn(logits, label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        it += 1
        seen += batch
        if it % 200 == 0:
            acc = (logits.argmax(-1) == label).float().mean()
            print(f"it {it} loss {loss.item():.3f} acc {acc.item():.3f}")
    dt = time.monotonic() - t0
    print(f"done: {it} iterations, {seen / dt:.0f} objects/s, loss {loss.item():.3f}")


if __name__ == "__main__":
    run()
