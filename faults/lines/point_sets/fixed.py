"""Jet tagging on variable-size particle clouds (DeepSets)."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
MAX_PARTICLES = 24
BATCH_SIZE = 2048 if device == "cuda" else 384
LOG_EVERY = 100


def make_jets(n=40000, seed=3):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 5, (n,), generator=g)
    count = torch.randint(6, MAX_PARTICLES + 1, (n,), generator=g)
    p = torch.randn(n, MAX_PARTICLES, 4, generator=g)
    p[..., 0] += 0.4 * label[:, None]
    p[..., 1] *= 1.0 + 0.2 * label[:, None]
    valid = torch.arange(MAX_PARTICLES)[None, :] < count[:, None]
    return p * valid[..., None], count, label


class DeepSet(nn.Module):
    def __init__(self, n_features=4, hidden=48, n_classes=5):
        super().__init__()
        self.phi = nn.Sequential(
            nn.Linear(n_features, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden),
        )
        self.rho = nn.Sequential(
            nn.Linear(hidden, 256), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(256, n_classes),
        )

    def forward(self, particles, count):
        h = self.phi(particles)
        valid = torch.arange(h.shape[1], device=h.device)[None, :] < count[:, None]
        pooled = h.masked_fill(~valid[..., None], float("-inf")).max(dim=1).values
        return self.rho(pooled)


def fit(model, particles, count, label, seconds=14.0):
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    n = len(label)
    step, loss_sum = 0, torch.zeros((), device=device)
    start = time.perf_counter()
    epoch = 0
    while True:
        order = torch.randperm(n, device=device)
        for i in range(0, n - BATCH_SIZE + 1, BATCH_SIZE):
            idx = order[i:i + BATCH_SIZE]
            logits = model(particles[idx], count[idx])
            loss = F.cross_entropy(logits, label[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss_sum += loss.detach()
            step += 1
            if step % LOG_EVERY == 0:
                print(f"epoch {epoch} step {step} loss {loss_sum.item() / LOG_EVERY:.4f}")
                loss_sum.zero_()
            if time.perf_counter() - start > seconds:
                if device == "cuda":
                    torch.cuda.synchronize()
                return step, time.perf_counter() - start
        epoch += 1


def main():
    torch.manual_seed(0)
    particles, count, label = (t.to(device) for t in make_jets())
    model = DeepSet().to(device)
    steps, elapsed = fit(model, particles, count, label)
    print(f"done: {steps / elapsed:.2f} steps/s, {steps * BATCH_SIZE / elapsed:.1f} samples/s")


if __name__ == "__main__":
    main()
