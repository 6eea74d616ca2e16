import json
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


def write_curriculum(n_samples, path):
    g = torch.Generator().manual_seed(1)
    difficulty = torch.rand(n_samples, generator=g)
    table = {"version": 3, "weights": [round(1.5 - d, 4) for d in difficulty.tolist()]}
    with open(path, "w") as f:
        json.dump(table, f)


def read_weights(path):
    with open(path) as f:
        table = json.load(f)
    return torch.tensor(table["weights"], device=device)


def make_sequences(n=60000, length=24, n_channels=8, classes=6):
    g = torch.Generator().manual_seed(2)
    y = torch.randint(0, classes, (n,), generator=g)
    t = torch.arange(length).float()
    freq = 0.15 + 0.1 * y.float()
    x = torch.sin(freq[:, None, None] * t[None, :, None] + torch.rand(n, 1, n_channels, generator=g) * 6)
    return x + 0.7 * torch.randn(n, length, n_channels, generator=g), y


class GestureNet(nn.Module):
    def __init__(self, n_channels=8, hidden=64, classes=6):
        super().__init__()
        self.rnn = nn.GRU(n_channels, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.head(h[-1])


def main():
    torch.manual_seed(0)
    x, y = make_sequences()
    x, y = x.to(device), y.to(device)
    path = os.path.join(tempfile.mkdtemp(), "curriculum.json")
    write_curriculum(len(y), path)
    model = GestureNet().to(device)
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    batch = 4096 if device == "cuda" else 64
    curriculum = read_weights(path)
    deadline = 14
    step, t0 = 0, time.time()
    while time.time() - t0 < deadline:
        rows = torch.randint(0, len(y), (batch,), device=device)
        weight = curriculum[rows]
        nll = F.cross_entropy(model(x[rows]), y[rows], reduction="none")
        loss = (weight * nll).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step} weighted nll {loss.item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * batch / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
