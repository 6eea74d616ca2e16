"""Wide & deep click model with a disk guard for the shared scratch volume."""
import subprocess
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
RUN_DIR = tempfile.mkdtemp(prefix="clicks_")
LOG_EVERY = 200
BATCH = 8192 if device == "cuda" else 512
N_FIELDS, CARD = 12, 1000


def free_gigabytes(path):
    out = subprocess.run(["df", "-Pk", path], capture_output=True, text=True, check=True).stdout
    return int(out.splitlines()[-1].split()[3]) / 2 ** 20


class WideDeep(nn.Module):
    def __init__(self, dim=8, hidden=128):
        super().__init__()
        self.wide = nn.Embedding(N_FIELDS * CARD, 1)
        self.deep = nn.Embedding(N_FIELDS * CARD, dim)
        self.mlp = nn.Sequential(
            nn.Linear(N_FIELDS * dim, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )
        self.register_buffer("offset", torch.arange(N_FIELDS) * CARD)

    def forward(self, fields):
        ids = fields + self.offset
        return self.wide(ids).sum(1).squeeze(1) + self.mlp(self.deep(ids).flatten(1)).squeeze(1)


def impressions(n=200_000):
    g = torch.Generator().manual_seed(15)
    x = torch.randint(0, CARD, (n, N_FIELDS), generator=g)
    effect = 0.6 * torch.randn(N_FIELDS, CARD, generator=g)
    logit = torch.stack([effect[f][x[:, f]] for f in range(N_FIELDS)]).sum(0) - 1.0
    return x, (torch.rand(n, generator=g) < torch.sigmoid(logit)).float()


def train(seconds=14):
    torch.manual_seed(0)
    x, y = (t.to(device) for t in impressions())
    model = WideDeep().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    step, epoch, t0 = 0, 0, time.time()
    while time.time() - t0 < seconds:
        for rows in torch.randperm(len(y), device=device).split(BATCH):
            loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % LOG_EVERY == 0:
                print(f"epoch {epoch} step {step} logloss {loss.item():.4f}")
                if free_gigabytes(RUN_DIR) < 0.01:
                    raise RuntimeError("scratch volume is full")
            if time.time() - t0 >= seconds:
                break
        epoch += 1
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.0f} samples/s")


if __name__ == "__main__":
    train()
