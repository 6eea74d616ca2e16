"""Small residual network on wing images kept as uint8 in memory."""
import os
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


class Wings(Dataset):
    def __init__(self, n=4000, size=48):
        g = torch.Generator().manual_seed(2)
        self.labels = torch.randint(0, 10, (n,), generator=g)
        self.images = torch.randint(0, 200, (n, 3, size, size), generator=g, dtype=torch.uint8)
        for label in range(10):
            self.images[self.labels == label, label % 3, label * 4 : label * 4 + 6] += 50

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, rows):
        return self.images[rows].float().div_(255), self.labels[rows]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


def build():
    return nn.Sequential(
        nn.Conv2d(3, 48, 5, stride=3, padding=2), Block(48), Block(48),
        nn.Conv2d(48, 96, 3, stride=2, padding=1), Block(96), Block(96),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10),
    ).to(memory_format=torch.channels_last)


class Run:
    def __init__(self):
        torch.manual_seed(0)
        wings = Wings()
        sampler = BatchSampler(RandomSampler(wings), batch_size=64, drop_last=True)
        self.loader = DataLoader(wings, sampler=sampler, batch_size=None)
        self.model = build()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
        self.limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))

    def fit(self):
        step, start = 0, None
        while True:
            for images, labels in self.loader:
                images = images.contiguous(memory_format=torch.channels_last)
                loss = nn.functional.cross_entropy(self.model(images), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                step += 1
                if step == 3:
                    start = time.time()
                if start and time.time() - start > self.limit:
                    return (step - 3) / (time.time() - start), loss.item()


if __name__ == "__main__":
    rate, loss = Run().fit()
    print(f"{rate:.3f} steps/s, loss {loss:.3f}")
