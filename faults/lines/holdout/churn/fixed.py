"""Customer churn: tabular network with numeric and categorical columns."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler

CARDINALITIES = [12, 50, 7, 30]
N_NUMERIC = 20


def simulate_customers(n, seed):
    rng = np.random.default_rng(seed)
    numeric = rng.normal(size=(n, N_NUMERIC)).astype(np.float32)
    categorical = np.stack([rng.integers(0, c, size=n) for c in CARDINALITIES], axis=1)
    effects = [rng.normal(scale=0.6, size=c) for c in CARDINALITIES]
    logit = numeric[:, :5] @ np.array([0.9, -0.7, 0.5, 0.3, -0.2]) - 1.0
    logit += sum(effect[categorical[:, j]] for j, effect in enumerate(effects))
    churned = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    return numeric, categorical, churned


class CustomerDataset(Dataset):
    def __init__(self, numeric, categorical, churned):
        self.numeric = torch.from_numpy(numeric)
        self.categorical = torch.from_numpy(categorical)
        self.churned = torch.from_numpy(churned)

    def __len__(self):
        return len(self.churned)

    def __getitem__(self, index):
        return {
            "numeric": self.numeric[index],
            "categorical": self.categorical[index],
            "churned": self.churned[index],
        }


class TabularNet(nn.Module):
    def __init__(self, hidden=128, dim=8):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(c, dim) for c in CARDINALITIES)
        self.mlp = nn.Sequential(
            nn.Linear(N_NUMERIC + dim * len(CARDINALITIES), hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, numeric, categorical):
        columns = [table(categorical[:, j]) for j, table in enumerate(self.tables)]
        return self.mlp(torch.cat([numeric, *columns], dim=1)).squeeze(1)


def evaluate(model, loader, loss_fn):
    model.eval()
    total, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for batch in loader:
            logit = model(batch["numeric"], batch["categorical"])
            total += loss_fn(logit, batch["churned"]).item() * len(logit)
            correct += ((logit > 0) == (batch["churned"] > 0.5)).sum().item()
            count += len(logit)
    return total / count, correct / count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=110_000)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    numeric, categorical, churned = simulate_customers(args.rows, args.seed)
    cut = int(0.9 * args.rows)
    train_set = CustomerDataset(numeric[:cut], categorical[:cut], churned[:cut])
    valid_set = CustomerDataset(numeric[cut:], categorical[cut:], churned[cut:])
    train_loader = DataLoader(
        train_set, batch_size=None, sampler=BatchSampler(RandomSampler(train_set), args.batch_size, drop_last=True))
    valid_loader = DataLoader(
        valid_set, batch_size=None, sampler=BatchSampler(SequentialSampler(valid_set), 4 * args.batch_size, False))

    model = TabularNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        model.train()
        start, running = time.time(), torch.zeros(())
        for batch in train_loader:
            loss = loss_fn(model(batch["numeric"], batch["categorical"]), batch["churned"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        valid_loss, accuracy = evaluate(model, valid_loader, loss_fn)
        print(f"epoch {epoch}: train {running.item() / len(train_loader):.4f} valid {valid_loss:.4f} "
              f"acc {accuracy:.3f} ({time.time() - start:.1f}s)")


if __name__ == "__main__":
    main()
