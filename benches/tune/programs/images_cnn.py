"""Grey pictures of 128×128 into a CNN. As its team began: no workers, batch 64, an evaluation after every epoch."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
count, channels = (32_000, [1, 32, 64, 128, 256]) if device.type == "cuda" else (6_000, [1, 4, 8, 16, 16])
torch.manual_seed(0)


class Pictures(Dataset):
    def __init__(self, count):
        self.pixels = np.random.default_rng(0).integers(0, 255, (2000, 128, 128), dtype=np.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        picture = torch.from_numpy(self.pixels[index % len(self.pixels)]).float().div_(255)
        picture = (picture - picture.mean()) / picture.std()
        if index & 1:
            picture = picture.flip(-1)
        return picture[None], index % 10


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = [nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)) for a, b in zip(channels, channels[1:])]
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels[-1], 10)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


def main():
    loader = DataLoader(Pictures(count), batch_size=64, shuffle=True, num_workers=0)
    checking = DataLoader(Pictures(640), batch_size=64, num_workers=0)
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        model.train()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in checking)
        print("epoch", epoch, right, flush=True)


if __name__ == "__main__":
    main()
