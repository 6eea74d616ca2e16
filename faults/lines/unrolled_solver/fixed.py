"""Learned iterative shrinkage (LISTA) for sparse recovery."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--measurements", type=int, default=64)
    p.add_argument("--atoms", type=int, default=128)
    p.add_argument("--iterations", type=int, default=24)
    p.add_argument("--lr", type=float, default=5e-4)
    p.add_argument("--seconds", type=float, default=14.0)
    p.add_argument("--log-every", type=int, default=100)
    return p.parse_args()


class LISTA(nn.Module):
    def __init__(self, A, iterations):
        super().__init__()
        m, n = A.shape
        L = torch.linalg.matrix_norm(A, 2) ** 2
        self.We = nn.Parameter(A.t() / L)
        self.S = nn.Parameter(torch.eye(n) - A.t() @ A / L)
        self.theta = nn.Parameter(torch.full((iterations, n), 0.05))
        self.gate = nn.Parameter(torch.zeros(iterations, n))

    def forward(self, y):
        b = y @ self.We.t()
        x = torch.zeros_like(b)
        for theta, gate in zip(self.theta, self.gate):
            z = b + x @ self.S.t()
            new = torch.sign(z) * F.relu(z.abs() - theta)
            g = torch.sigmoid(gate + 2.0)
            x = g * new + (1 - g) * x
        return x


def make_problem(args, n_train=20000):
    g = torch.Generator().manual_seed(9)
    A = torch.randn(args.measurements, args.atoms, generator=g)
    A = A / A.norm(dim=0, keepdim=True)
    support = (torch.rand(n_train, args.atoms, generator=g) < 0.08).float()
    codes = support * torch.randn(n_train, args.atoms, generator=g)
    y = codes @ A.t() + 0.01 * torch.randn(n_train, args.measurements, generator=g)
    return A, y, codes


def main():
    args = get_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch = 4096 if device == "cuda" else 64
    torch.manual_seed(0)
    A, y, codes = make_problem(args)
    y, codes = y.to(device), codes.to(device)
    model = LISTA(A, args.iterations).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)

    step = 0
    start = time.perf_counter()
    while time.perf_counter() - start < args.seconds:
        idx = torch.randint(0, len(y), (batch,), device=device)
        estimate = model(y[idx])
        loss = F.mse_loss(estimate, codes[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % args.log_every == 0:
            nmse = loss.item() / codes[idx].pow(2).mean().item()
            print(f"step {step} loss {loss.item():.5f} nmse {nmse:.3f}")
    if device == "cuda":
        torch.cuda.synchronize()
    elapsed = time.perf_counter() - start
    print(f"total {step} steps: {step / elapsed:.2f} steps/s, {step * batch / elapsed:.1f} samples/s")


if __name__ == "__main__":
    main()
