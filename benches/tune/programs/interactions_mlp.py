"""Rows of a table into an MLP with several heads. As its team began: no workers, rows turned into tensors one by one, batch 128."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
rows, width, layers = (500_000, 1024, 4) if device.type == "cuda" else (100_000, 128, 2)
torch.manual_seed(0)


class Table(Dataset):
    def __init__(self):
        generator = np.random.default_rng(0)
        self.features = generator.standard_normal((rows, 128), dtype=np.float32)
        self.labels = generator.integers(0, 2, (rows, 3)).astype(np.float32)

    def __len__(self):
        return rows

    def __getitem__(self, index):
        return torch.tensor(self.features[index]), torch.tensor(self.labels[index])


def main():
    loader = DataLoader(Table(), batch_size=128, shuffle=True, num_workers=0)
    parts = [nn.Linear(128, width), nn.ReLU()]
    for _ in range(layers - 1):
        parts += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Linear(width, 3)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, loss.item(), flush=True)


if __name__ == "__main__":
    main()
