import argparse
import os
import time

import torch
from torch import nn


def parse():
    p = argparse.ArgumentParser(description="Tensile strength of alloys from composition and process curves")
    p.add_argument("--width", type=int, default=768)
    p.add_argument("--depth", type=int, default=4)
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--seconds", type=float, default=float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))
    return p.parse_args()


def mlp(width, depth):
    layers = [nn.Linear(120, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def main():
    args = parse()
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    x = torch.randn(16_384, 120)
    y = (x[:, :30] * x[:, 30:60]).sum(1, keepdim=True) / 5
    model = mlp(args.width, args.depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    done, start = 0, None
    while start is None or time.perf_counter() - start < args.seconds:
        for rows in torch.randperm(len(x)).split(args.batch):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done == 3:
                start = time.perf_counter()
            if start is not None and time.perf_counter() - start >= args.seconds:
                break
    print(f"loss {loss.item():.4f}, {(done - 3) / (time.perf_counter() - start):.3f} steps/s")


if __name__ == "__main__":
    main()
