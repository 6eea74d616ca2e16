import time

import numpy as np
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def simulate_market(n=30000, n_features=96, seed=21):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    hidden = np.maximum(X @ rng.normal(size=(n_features, 20)) / 5, 0)
    price = hidden @ rng.normal(size=20) + rng.normal(scale=0.1, size=n)
    price = (price - price.mean()) / price.std()
    return X, price


def split(X, y, frac=0.9):
    k = int(len(X) * frac)
    return (X[:k], y[:k]), (X[k:], y[k:])


def build_model(n_features):
    return nn.Sequential(
        nn.Linear(n_features, 640),
        nn.ReLU(),
        nn.Linear(640, 640),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(640, 640),
        nn.ReLU(),
        nn.Linear(640, 1),
    )


def to_tensors(X, y):
    X = torch.from_numpy(X).float().to(device)
    y = torch.from_numpy(y).float().to(device)
    return X, y


@torch.no_grad()
def validate(model, X, y):
    model.eval()
    rmse = (model(X).squeeze(1) - y).pow(2).mean().sqrt().item()
    model.train()
    return rmse


def train(seconds=14, log_every=100):
    torch.manual_seed(0)
    X, y = simulate_market()
    (Xtr, ytr), (Xva, yva) = split(X, y)
    Xtr, ytr = to_tensors(Xtr, ytr)
    Xva, yva = to_tensors(Xva, yva)
    model = build_model(X.shape[1]).to(device)
    loss_fn = nn.SmoothL1Loss()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    batch = 8192 if device.type == "cuda" else 256

    step, epoch = 0, 0
    start = time.time()
    running = True
    while running:
        order = torch.randperm(len(Xtr), device=device)
        for i in range(0, len(order), batch):
            rows = order[i:i + batch]
            pred = model(Xtr[rows]).squeeze(1)
            loss = loss_fn(pred, ytr[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % log_every == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            if time.time() - start > seconds:
                running = False
                break
        epoch += 1
    if device.type == "cuda":
        torch.cuda.synchronize()
    elapsed = time.time() - start
    print(f"validation rmse {validate(model, Xva, yva):.4f}")
    print(f"{step / elapsed:.2f} steps/s, {step * batch / elapsed:.1f} samples/s")


if __name__ == "__main__":
    train()
