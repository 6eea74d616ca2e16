"""DenseNet-like 1-D network for ECG beat classification with gradient monitoring."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class DenseLayer(nn.Module):
    def __init__(self, n_in, growth):
        super().__init__()
        self.norm = nn.BatchNorm1d(n_in)
        self.conv = nn.Conv1d(n_in, growth, 3, padding=1)

    def forward(self, x):
        return torch.cat([x, self.conv(F.relu(self.norm(x)))], dim=1)


class ECGNet(nn.Module):
    def __init__(self, leads=2, growth=4, layers_per_block=10, blocks=3, classes=5):
        super().__init__()
        ch = 16
        self.stem = nn.Conv1d(leads, ch, 5, stride=2, padding=2)
        stages = []
        for _ in range(blocks):
            for _ in range(layers_per_block):
                stages.append(DenseLayer(ch, growth))
                ch += growth
            stages += [nn.Conv1d(ch, ch // 2, 1), nn.AvgPool1d(2)]
            ch //= 2
        self.body = nn.Sequential(*stages)
        self.fc = nn.Linear(ch, classes)

    def forward(self, x):
        return self.fc(self.body(self.stem(x)).mean(-1))


class GradientMonitor:
    def __init__(self, model):
        self.params = list(model.named_parameters())
        self.table = {}

    def collect(self):
        total = 0.0
        for name, p in self.params:
            g = p.grad
            norm = g.norm().item()
            total += norm ** 2
            self.table[name] = {
                "norm": norm,
                "max": g.abs().max().item(),
                "median": g.abs().median().item(),
                "q99": torch.quantile(g.abs().flatten(), 0.99).item(),
                "std": g.std(unbiased=False).item(),
                "ratio": norm / (p.detach().norm().item() + 1e-12),
            }
        return total ** 0.5


def beats(n=6000, length=64):
    g = torch.Generator().manual_seed(5)
    y = torch.randint(0, 5, (n,), generator=g)
    shapes = torch.randn(5, 2, length, generator=g).cumsum(-1) * 0.3
    return shapes[y] + 1.0 * torch.randn(n, 2, length, generator=g), y


def fit(seconds=14, max_norm=1.0):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    x, y = (t.to(device) for t in beats())
    model = ECGNet().to(device)
    monitor = GradientMonitor(model)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    batch = 1024 if device == "cuda" else 16
    step, t0 = 0, time.time()
    while time.time() - t0 < seconds:
        idx = torch.randint(0, len(y), (batch,), device=device)
        loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        if (step + 1) % 100 == 0:
            norm = monitor.collect()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        opt.step()
        step += 1
        if step % 100 == 0:
            widest = max(monitor.table, key=lambda k: monitor.table[k]["ratio"])
            print(f"step {step} loss {loss.item():.4f} |g| {norm:.3f} top {widest}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * batch / dt:.1f} samples/s")


if __name__ == "__main__":
    fit()
