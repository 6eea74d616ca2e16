"""Tabular residual network with an exponential moving average of the weights."""
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")


class Block(nn.Module):
    def __init__(self, dim, dropout=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(dim, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class TabNet(nn.Module):
    def __init__(self, n_in=200, dim=96, depth=28, classes=12):
        super().__init__()
        self.stem = nn.Linear(n_in, dim)
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


class ModelEma:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        current = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
        average = {k: v.detach().cpu().clone() for k, v in self.module.state_dict().items()}
        for name in average:
            average[name] = self.decay * average[name] + (1 - self.decay) * current[name]
        self.module.load_state_dict(average)


def table(n=40000, n_in=200, classes=12):
    g = torch.Generator().manual_seed(8)
    proto = torch.randn(classes, n_in, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    return 0.3 * proto[y] + torch.randn(n, n_in, generator=g), y


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


def train(budget=14.0):
    torch.manual_seed(0)
    x, y = (t.to(device) for t in table())
    x_val, y_val = x[-256:], y[-256:]
    x, y = x[:-256], y[:-256]
    batch = 4096 if device == "cuda" else 64
    model = TabNet().to(device)
    ema = ModelEma(model)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05, fused=True)
    step, t0 = 0, time.perf_counter()
    while time.perf_counter() - t0 < budget:
        idx = torch.randint(0, len(y), (batch,), device=device)
        loss = F.cross_entropy(model(x[idx]), y[idx], label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)
        step += 1
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print(f"ema accuracy {accuracy(ema.module, x_val, y_val):.3f}")
    print(f"{step / dt:.2f} steps/s, {step * batch / dt:.1f} samples/s")


if __name__ == "__main__":
    train()
