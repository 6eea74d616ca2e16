"""Physics-informed network for the heat equation u_t = a u_xx, trained with LBFGS."""
import math
import time

import torch
import torch.nn as nn

ALPHA = 0.05


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


class Field(nn.Module):
    def __init__(self, width=96, depth=4):
        super().__init__()
        layers = [nn.Linear(2, width), nn.Tanh()]
        for i in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh() if i else Sine()]
        layers += [nn.Linear(width, 1)]
        self.net = nn.Sequential(*layers)

    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


class Problem:
    """Collocation points inside, at the start and on the walls."""

    def __init__(self, inside, edge, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.rand(inside, 1, generator=g).requires_grad_()
        self.t = torch.rand(inside, 1, generator=g).requires_grad_()
        self.x0 = torch.rand(edge, 1, generator=g)
        self.t0 = torch.zeros(edge, 1)
        self.u0 = torch.sin(math.pi * self.x0) + 0.5 * torch.sin(3 * math.pi * self.x0)
        self.xw = torch.randint(0, 2, (edge, 1), generator=g).float()
        self.tw = torch.rand(edge, 1, generator=g)

    def residual(self, field):
        u = field(self.x, self.t)
        u_t = derivative(u, self.t)
        u_x = derivative(u, self.x)
        return u_t - ALPHA * derivative(u_x, self.x)

    def loss(self, field):
        inner = self.residual(field).square().mean()
        initial = (field(self.x0, self.t0) - self.u0).square().mean()
        walls = field(self.xw, self.tw).square().mean()
        return inner + 10 * initial + 10 * walls


def exact(x, t):
    decay = math.pi**2 * ALPHA
    return torch.sin(math.pi * x) * torch.exp(-decay * t) + 0.5 * torch.sin(3 * math.pi * x) * torch.exp(-9 * decay * t)


def error(field, n=50):
    x, t = torch.meshgrid(torch.linspace(0, 1, n), torch.linspace(0, 1, n), indexing="ij")
    x, t = x.reshape(-1, 1), t.reshape(-1, 1)
    with torch.no_grad():
        gap = field(x, t) - exact(x, t)
    return gap.square().mean().sqrt().item()


def main():
    torch.manual_seed(191)
    field = Field()
    problem = Problem(inside=1500, edge=200, seed=191)
    opt = torch.optim.LBFGS(field.parameters(), lr=0.5, max_iter=4, history_size=10)
    calls = 0

    def closure():
        nonlocal calls
        opt.zero_grad()
        value = problem.loss(field)
        value.backward()
        calls += 1
        return value

    steps = 0
    start = time.monotonic()
    while time.monotonic() - start < 12:
        loss = opt.step(closure)
        steps += 1
        if steps % 40 == 0:
            print(f"step {steps}: loss {loss.item():.3e}, error {error(field):.4f}", flush=True)
    print(f"{calls} closure calls, error {error(field):.4f}")
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
