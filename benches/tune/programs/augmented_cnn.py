"""Pictures that are augmented item by item in Python: one worker, batch 32. The loader is the bottleneck."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)


class Augmented(Dataset):
    def __init__(self):
        self.pixels = np.random.default_rng(0).integers(0, 255, (500, 64, 64, 3), dtype=np.uint8)

    def __len__(self):
        return 50_000

    def __getitem__(self, index):
        generator = np.random.default_rng(index)
        picture = self.pixels[index % 500].astype(np.float32) / 255
        for _ in range(6):
            picture = np.roll(picture, int(generator.integers(-4, 5)), axis=int(generator.integers(0, 2)))
            picture = picture * generator.uniform(0.9, 1.1) + generator.normal(0, 0.01, picture.shape).astype(np.float32)
        return torch.from_numpy(picture.transpose(2, 0, 1).copy()), index % 10


def main():
    loader = DataLoader(Augmented(), batch_size=32, shuffle=True, num_workers=1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(1000):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.cross_entropy(model(x.float()), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, loss.item(), flush=True)


if __name__ == "__main__":
    main()
