"""A small training program that is slower than it should be. It needs no GPU and takes half a minute.

    flatout lint examples/slow_train.py
    flatout run -- python examples/slow_train.py
    flatout diagnose last

The lint sees what can be seen in the source; the run says what each of it costs here. Mend what the first finding
names, run again, and look how many samples a second it became.
"""

import itertools
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SECONDS = 25


class Windows(Dataset):
    """Thirty days of prices for each sample, normalised when it is asked for."""

    def __init__(self, folder, days=4000, features=16):
        generator = torch.Generator().manual_seed(0)
        self.prices = torch.randn(days, features, generator=generator).cumsum(0)
        self.scale = os.path.join(folder, "scale.pt")
        torch.save({"mean": self.prices.mean(0), "std": self.prices.std(0)}, self.scale)

    def __len__(self):
        return len(self.prices) - 31

    def __getitem__(self, index):
        scale = torch.load(self.scale)
        window = (self.prices[index : index + 30] - scale["mean"]) / scale["std"]
        label = (self.prices[index + 30, 0] > self.prices[index + 29, 0]).float()
        return window.flatten(), label


def evaluate(model, loader):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for x, y in itertools.islice(loader, 4):
            right += ((model(x).squeeze(1) > 0) == (y > 0.5)).sum().item()
            seen += len(y)
    model.train()
    return right / seen


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        train(folder)


def train(folder):
    data = Windows(folder)
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=0)
    held_out = DataLoader(data, batch_size=64)
    model = nn.Sequential(nn.Linear(480, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin, step = time.monotonic(), 0
    while time.monotonic() - begin < SECONDS:
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 20 == 0:
                print(f"step {step}: loss {loss.item():.4f}, accuracy {evaluate(model, held_out):.3f}")
                torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
            if time.monotonic() - begin > SECONDS:
                break
    print(f"{step * 64 / (time.monotonic() - begin):.0f} samples/s")


if __name__ == "__main__":
    main()
