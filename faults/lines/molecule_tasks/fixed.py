"""Multi-task property prediction with many heads and loss balancing."""
import time

import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"
N_TASKS = 48
BATCH = 1024 if device == "cuda" else 128
LOG_EVERY = 100


def molecules(n=30000, n_bits=512):
    g = torch.Generator().manual_seed(17)
    x = (torch.rand(n, n_bits, generator=g) < 0.1).float()
    w = torch.randn(n_bits, N_TASKS, generator=g) / 7
    y = x @ w + 0.1 * torch.randn(n, N_TASKS, generator=g)
    return x, (y - y.mean(0)) / y.std(0)


class MultiTaskNet(nn.Module):
    def __init__(self, n_bits=512, width=512, depth=6):
        super().__init__()
        layers = [nn.Linear(n_bits, width)]
        for _ in range(depth):
            layers += [nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width)]
        self.trunk = nn.Sequential(*layers)
        self.heads = nn.Linear(width, N_TASKS)

    def forward(self, x):
        return self.heads(torch.relu(self.trunk(x)))


class Balancer:
    """Scales each task by the inverse of its running loss."""

    def __init__(self, momentum=0.99):
        self.momentum = momentum
        self.avg = torch.ones(N_TASKS, device=device)

    def combine(self, per_task):
        self.avg.lerp_(per_task.detach(), 1 - self.momentum)
        weights = 1.0 / self.avg.clamp(min=1e-3)
        return (weights * per_task).sum() / weights.sum()


def train(seconds=14):
    torch.manual_seed(0)
    x, y = (t.to(device) for t in molecules())
    net = MultiTaskNet().to(device)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    balancer = Balancer()
    step, epoch, start = 0, 0, time.time()
    while time.time() - start < seconds:
        order = torch.randperm(len(x), device=device)
        for idx in order[: len(x) // BATCH * BATCH].view(-1, BATCH):
            per_task = (net(x[idx]) - y[idx]).pow(2).mean(0)
            loss = balancer.combine(per_task)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % LOG_EVERY == 0:
                print(f"epoch {epoch} step {step} balanced loss {loss.item():.4f}")
            if time.time() - start >= seconds:
                break
        epoch += 1
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - start
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.0f} samples/s")


if __name__ == "__main__":
    train()
