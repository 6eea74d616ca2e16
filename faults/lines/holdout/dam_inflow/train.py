"""Inflow forecast with an LSTM; validates now and then and keeps the best weights."""
import os
import tempfile
import time

import torch
from torch import nn

CONFIG = dict(history=48, features=12, hidden=128, batch=128, lr=2e-3, validate_every=80, log_every=50)


def series(n=12_000):
    g = torch.Generator().manual_seed(6)
    t = torch.arange(n, dtype=torch.float32)
    base = torch.stack([(t / p).sin() for p in (24, 168, 700, 8760)], 1)
    return torch.cat([base, 0.3 * torch.randn(n, CONFIG["features"] - 4, generator=g)], 1)


class Inflow(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1]).squeeze(1)


def main(c):
    torch.manual_seed(1)
    limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    values = series()
    windows = values.unfold(0, c["history"], 1).transpose(1, 2)[:-1]
    targets = values[c["history"] :, :4].sum(1)
    split = len(windows) - 512
    model = Inflow(c["features"], c["hidden"])
    optimizer = torch.optim.Adam(model.parameters(), lr=c["lr"])
    best = float("inf")
    step, start = 0, None
    with tempfile.TemporaryDirectory() as folder:
        while start is None or time.time() - start < limit:
            rows = torch.randint(0, split, (c["batch"],))
            loss = nn.functional.mse_loss(model(windows[rows]), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            if step == 3:
                start = time.time()
            if step % c["log_every"] == 0:
                print(f"step {step}: {loss.item():.4f}")
            if step % c["validate_every"] == 0:
                model.eval()
                with torch.inference_mode():
                    score = nn.functional.mse_loss(model(windows[split:]), targets[split:]).item()
                model.train()
                if score < best:
                    best = score
                    torch.save(model.state_dict(), os.path.join(folder, "best.pt"))
        print(f"{(step - 3) / (time.time() - start):.3f} steps/s, best {best:.4f}")


if __name__ == "__main__":
    main(CONFIG)
