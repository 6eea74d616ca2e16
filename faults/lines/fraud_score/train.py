"""Fraud scoring: MLP with per-epoch ROC-AUC, confusion matrix and checkpointing of the best model."""
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import confusion_matrix, roc_auc_score

device = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 4096 if device == "cuda" else 256


def transactions(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 96), dtype=np.float32)
    w = np.random.default_rng(99).standard_normal(96).astype(np.float32) / 10
    y = (x @ w + 0.5 * rng.standard_normal(n, dtype=np.float32) > 1.4).astype(np.float32)
    return torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)


class FraudNet(nn.Module):
    def __init__(self, width=448):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(96, width), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    scores = torch.cat([model(part) for part in x.split(4096)]).cpu().numpy()
    model.train()
    truth = y.cpu().numpy()
    return roc_auc_score(truth, scores), confusion_matrix(truth, scores > 0)


def main(seconds=14):
    torch.manual_seed(0)
    x, y = transactions(400_000 if device == "cuda" else 80_000, 1)
    x_val, y_val = transactions(6000, 2)
    model = FraudNet().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    best_path = os.path.join(tempfile.mkdtemp(), "best.pt")
    best, step, epoch, t0 = 0.0, 0, 0, time.time()
    while time.time() - t0 < seconds:
        for rows in torch.randperm(len(y), device=device).split(BATCH):
            loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 100 == 0:
                print(f"  step {step} loss {loss.item():.4f}")
            if time.time() - t0 >= seconds:
                break
        auc, table = evaluate(model, x_val, y_val)
        print(f"epoch {epoch} auc {auc:.4f} false positives {table[0, 1]} misses {table[1, 0]}")
        if auc > best:
            best = auc
            torch.save(model.state_dict(), best_path)
        epoch += 1
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.0f} samples/s")


if __name__ == "__main__":
    main()
