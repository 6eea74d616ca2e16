"""Segment the sea floor in side-scan sonar swaths."""
import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

CUDA = torch.cuda.is_available()


def conv(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), nn.GroupNorm(8, o), nn.SiLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1, bias=False), nn.GroupNorm(8, o), nn.SiLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.d1, self.d2, self.d3, self.mid = conv(1, w), conv(w, 2 * w), conv(2 * w, 4 * w), conv(4 * w, 8 * w)
        self.u3, self.u2, self.u1 = conv(12 * w, 4 * w), conv(6 * w, 2 * w), conv(3 * w, w)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        h = self.mid(F.max_pool2d(c, 2))
        h = self.u3(torch.cat([F.interpolate(h, scale_factor=2), c], 1))
        h = self.u2(torch.cat([F.interpolate(h, scale_factor=2), b], 1))
        h = self.u1(torch.cat([F.interpolate(h, scale_factor=2), a], 1))
        return self.out(h)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=16 if CUDA else 2)
    p.add_argument("--size", type=int, default=256 if CUDA else 32)
    p.add_argument("--width", type=int, default=32 if CUDA else 8)
    p.add_argument("--seconds", type=float, default=float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))
    args = p.parse_args()

    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    device = "cuda" if CUDA else "cpu"
    swaths = torch.randn(128, 1, args.size, args.size, device=device)
    floor = (swaths > 0.5).float()
    model = UNet(args.width).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=CUDA)

    n, start = 0, None
    while start is None or time.time() - start < args.seconds:
        rows = torch.randint(0, len(swaths), (args.batch,), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(swaths[rows].to(memory_format=torch.channels_last))
            loss = F.binary_cross_entropy_with_logits(logits, floor[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n += 1
        if n == 10:
            start = time.time()
    print(f"loss {loss.item():.4f}, {(n - 10) / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
