"""Click-through-rate model, watched by the AUC of the recent impressions."""
import time
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)
np.random.seed(42)
device = "cuda" if torch.cuda.is_available() else "cpu"
full = device == "cuda"
torch.set_float32_matmul_precision("high")

FIELDS = 24
BUCKETS = 100_000 if full else 500
EMB = 64 if full else 8
WIDTH = 4096 if full else 32
BATCH = 16384 if full else 512
LOG_ROWS = 4_000_000 if full else 20_000
KEEP = 24  # batches that the AUC covers


class CTR(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(BUCKETS, EMB)
        nn.init.normal_(self.table.weight, std=0.05)
        self.mlp = nn.Sequential(
            nn.Linear(FIELDS * EMB, WIDTH), nn.ReLU(inplace=True),
            nn.Linear(WIDTH, WIDTH), nn.ReLU(inplace=True),
            nn.Linear(WIDTH, 1))

    def forward(self, ids):
        return self.mlp(self.table(ids).flatten(1)).squeeze(-1)


def click_log():
    ids = torch.randint(0, BUCKETS, (LOG_ROWS, FIELDS), device=device, dtype=torch.int32)
    taste = torch.randn(BUCKETS, device=device)
    score = taste[ids[:, 0]] + taste[ids[:, 1]] - 1.5
    return ids, (torch.rand(LOG_ROWS, device=device) < score.sigmoid()).float()


class RollingAUC:
    def __init__(self, keep):
        self.scores, self.labels = deque(maxlen=keep), deque(maxlen=keep)

    def add(self, logits, clicks):
        self.scores.append(logits.detach().float().cpu().numpy())
        self.labels.append(clicks.cpu().numpy())

    def value(self):
        s, y = np.concatenate(self.scores), np.concatenate(self.labels)
        rank = np.empty(len(s))
        rank[np.argsort(s, kind="stable")] = np.arange(1, len(s) + 1)
        pos = y.sum()
        return (rank[y > 0].sum() - pos * (pos + 1) / 2) / max(pos * (len(y) - pos), 1)


def main():
    ids, clicks = click_log()
    model = CTR().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0, fused=True)
    meter, best = RollingAUC(KEEP), 0.0

    t0, step = time.monotonic(), 0
    while time.monotonic() - t0 < 18:
        rows = torch.randint(0, LOG_ROWS, (BATCH,), device=device)
        x, y = ids[rows], clicks[rows]
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(x)
        loss = F.binary_cross_entropy_with_logits(logits.float(), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        step += 1

        meter.add(logits, y)
        auc = meter.value()
        best = max(best, auc)
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f} auc {auc:.4f} best {best:.4f}")
    dt = time.monotonic() - t0
    print(f"{step * BATCH / dt:,.0f} impressions/s, {step} steps, best auc {best:.4f}")


if __name__ == "__main__":
    main()
