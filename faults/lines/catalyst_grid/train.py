import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    cuda = torch.cuda.is_available()
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=400_000 if cuda else 4_000)
    p.add_argument("--batch-size", type=int, default=4096 if cuda else 64)
    p.add_argument("--width", type=int, default=4096 if cuda else 64)
    p.add_argument("--seconds", type=float, default=float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))
    p.add_argument("--device", default="cuda" if cuda else "cpu")
    return p.parse_args()


def make_data(rows, device):
    g = torch.Generator(device).manual_seed(0)
    x = torch.randn(rows, 64, device=device, generator=g)
    y = (x[:, :8] ** 2).sum(1, keepdim=True)
    return x, y


def main():
    args = get_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    data = TensorDataset(*make_data(args.rows, args.device))
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True)
    w = args.width
    model = nn.Sequential(nn.Linear(64, w), nn.SiLU(), nn.Linear(w, w), nn.SiLU(), nn.Linear(w, w), nn.SiLU(), nn.Linear(w, 1))
    model.to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=args.device == "cuda")
    step, start = 0, None
    while True:
        for x, y in loader:
            with torch.autocast(args.device, dtype=torch.bfloat16):
                prediction = model(x)
            loss = nn.functional.mse_loss(prediction.float(), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == 10:
                start = time.time()
            if start and time.time() - start > args.seconds:
                print(f"{(step - 10) / (time.time() - start):.2f} steps/s, loss {loss.item():.3f}")
                return


if __name__ == "__main__":
    main()
