"""Residual MLP on tabular data, momentum SGD written by hand with foreach ops."""
import time

import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"
DIM, CLASSES = 128, 20


def make_data(n=20000):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    centers = torch.randn(CLASSES, DIM, generator=g)
    x = centers[y] + 2 * torch.randn(n, DIM, generator=g)
    return x.to(DEV), y.to(DEV)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.inp = nn.Linear(DIM, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.out = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.out(self.blocks(self.inp(x)))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    cuda = DEV == "cuda"
    x_all, y_all = make_data()
    width, depth, batch = (2048, 8, 4096) if cuda else (192, 3, 128)
    model = Net(width, depth).to(DEV)
    params = list(model.parameters())
    velocity = [torch.zeros_like(p) for p in params]
    lr, momentum = 0.02, 0.9
    step, start = 0, time.time()
    last = torch.zeros((), device=DEV)
    while time.time() - start < 14:
        pick = torch.randint(0, len(x_all), (batch,), device=DEV)
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            loss = nn.functional.cross_entropy(model(x_all[pick]), y_all[pick])
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            torch._foreach_mul_(velocity, momentum)
            torch._foreach_add_(velocity, grads)
            torch._foreach_add_(params, velocity, alpha=-lr)
        last = loss.detach()
        step += 1
        if step % 200 == 0:
            print(f"step {step} loss {last.item():.3f}")
    if cuda:
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
