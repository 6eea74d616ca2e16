"""Sequence classifier (GRU) with a JSON run log."""
import json
import os
import tempfile
import time

import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"
STEPS, CHANNELS, CLASSES = 24, 8, 5


def make_series(n=8000):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    t = torch.arange(STEPS).float()
    x = torch.sin(t[None, :, None] * (0.2 + 0.15 * y[:, None, None])) + 0.6 * torch.randn(n, STEPS, CHANNELS, generator=g)
    return x.to(DEV), y.to(DEV)


class RunLog:
    def __init__(self, path):
        self.path = path
        self.rows = []

    def add(self, **row):
        self.rows.append(row)

    def close(self):
        with open(self.path, "w") as f:
            json.dump({"run": "gru-baseline", "history": self.rows}, f, indent=1)


class Classifier(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.GRU(CHANNELS, width, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, CLASSES))

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


def main():
    torch.manual_seed(0)
    x_all, y_all = make_series()
    width, batch = (512, 256) if DEV == "cuda" else (48, 32)
    model = Classifier(width).to(DEV)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, 500, 0.9)
    log = RunLog(os.path.join(tempfile.mkdtemp(), "history.json"))
    step, start = 0, time.time()
    while time.time() - start < 14:
        pick = torch.randint(0, len(x_all), (batch,), device=DEV)
        logits = model(x_all[pick])
        loss = nn.functional.cross_entropy(logits, y_all[pick])
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        step += 1
        values = torch.stack([loss.detach(), norm, (logits.argmax(1) == y_all[pick]).float().mean()]).tolist()
        log.add(step=step, loss=values[0], grad_norm=values[1], acc=values[2], lr=sched.get_last_lr()[0],
                time=time.time() - start)
        if step % 200 == 0:
            print(f"step {step} loss {values[0]:.3f} acc {values[2]:.2f}")
    log.close()
    if DEV == "cuda":
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
