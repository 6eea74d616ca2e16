"""Position evaluation network (NNUE-like), trained with Lion and unit-wise gradient clipping."""
import time

import torch
from torch import nn
from torch.optim.optimizer import Optimizer

PIECES, SQUARES = 12, 64


class UnitLion(Optimizer):
    """Lion; the gradient of each output unit is clipped relative to the norm of its weights."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), clip=0.05, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, clip=clip, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                m = state["m"]
                w = p.view(-1, 1) if p.dim() == 1 else p.flatten(1)
                g, mom = p.grad.view_as(w), m.view_as(w)
                for u in range(w.size(0)):
                    limit = group["clip"] * max(w[u].norm().item(), 1e-3)
                    gu = g[u]
                    size = gu.norm().item()
                    if size > limit:
                        gu = gu * (limit / size)
                    direction = torch.sign(b1 * mom[u] + (1 - b1) * gu)
                    w[u].mul_(1 - group["lr"] * group["weight_decay"]).add_(direction, alpha=-group["lr"])
                    mom[u].mul_(b2).add_(gu, alpha=1 - b2)


class EvalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = nn.Linear(PIECES * SQUARES, 256)
        self.l1 = nn.Linear(512, 64)
        self.l2 = nn.Linear(64, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, white, black):
        h = torch.cat([self.side(white), self.side(black)], dim=1).clamp(0, 1)
        h = self.l1(h).clamp(0, 1)
        h = self.l2(h).clamp(0, 1)
        return self.out(h).squeeze(1)


def positions(n, gen):
    board = torch.zeros(n, PIECES, SQUARES)
    count = 20
    piece = torch.randint(0, PIECES, (n, count), generator=gen)
    square = torch.rand(n, SQUARES, generator=gen).argsort(1)[:, :count]
    board[torch.arange(n)[:, None], piece, square] = 1.0
    values = torch.tensor([1, 3, 3, 5, 9, 0, -1, -3, -3, -5, -9, 0.0])
    score = torch.sigmoid((board.sum(2) @ values) / 8)
    flipped = board.roll(6, dims=1).view(n, PIECES, 8, 8).flip(2).reshape(n, -1)
    return board.flatten(1), flipped, score


def main(batch=512, seconds=18.0):
    torch.manual_seed(64)
    gen = torch.Generator().manual_seed(64)
    white, black, score = positions(16000, gen)
    net = EvalNet()
    opt = UnitLion(net.parameters(), lr=3e-4, weight_decay=0.01)
    t0, n = time.monotonic(), 0
    running = 0.0
    while time.monotonic() - t0 < seconds:
        idx = torch.randint(0, len(score), (batch,), generator=gen)
        loss = nn.functional.binary_cross_entropy_with_logits(net(white[idx], black[idx]), score[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
        n += 1
        if n % 25 == 0:
            print(f"after {n} updates: {running / 25:.4f}")
            running = 0.0
    print(f"{n / (time.monotonic() - t0):.2f} updates/s")


if __name__ == "__main__":
    main()
