"""Country classification of scanned stamps that live in one zip archive."""
import io
import os
import tempfile
import time
import zipfile

import numpy as np
import torch
import torchvision.transforms.v2 as T
from PIL import Image
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

COUNTRIES = ["at", "be", "ch", "de", "dk", "fr", "it", "nl"]


def write_archive(folder, count=1400, size=40):
    rng = np.random.default_rng(77)
    base = rng.integers(40, 215, (len(COUNTRIES), 5, 5, 3))
    path = os.path.join(folder, "stamps.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for i in range(count):
            c = i % len(COUNTRIES)
            tile = np.kron(base[c], np.ones((8, 8, 1))) + rng.normal(0, 18, (size, size, 3))
            buf = io.BytesIO()
            Image.fromarray(tile.clip(0, 255).astype(np.uint8)).save(buf, "BMP")
            z.writestr(f"scans/{COUNTRIES[c]}/{i:05d}.bmp", buf.getvalue())
    return path


class StampZip(Dataset):
    def __init__(self, path, transform=None):
        self.path = path
        self.transform = transform
        with zipfile.ZipFile(path) as z:
            self.names = sorted(n for n in z.namelist() if n.endswith(".bmp"))
        self.targets = [COUNTRIES.index(n.split("/")[1]) for n in self.names]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        with zipfile.ZipFile(self.path) as archive:
            payload = archive.read(self.names[index])
        img = Image.open(io.BytesIO(payload)).convert("RGB")
        if self.transform:
            img = self.transform(img)
        return img, self.targets[index]


class StampNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 5, stride=2, padding=2)
        self.a = nn.Conv2d(24, 48, 3, stride=2, padding=1)
        self.b = nn.Conv2d(48, 96, 3, padding=1)
        self.fc = nn.Linear(96, classes)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        x = torch.relu(self.a(x))
        x = torch.relu(self.b(x))
        return self.fc(x.mean((2, 3)))


def train(limit=18.0):
    torch.manual_seed(77)
    with tempfile.TemporaryDirectory() as folder:
        tf = T.Compose([T.ToImage(), T.ToDtype(torch.float32, scale=True)])
        ds = StampZip(write_archive(folder), tf)
        dl = DataLoader(ds, batch_size=32, shuffle=True, num_workers=1, persistent_workers=True, drop_last=True)
        net = StampNet(len(COUNTRIES))
        opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        start, n, correct = time.monotonic(), 0, 0
        done = False
        while not done:
            for x, y in dl:
                out = net(x)
                loss = nn.functional.cross_entropy(out, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                n += 1
                correct += int((out.argmax(1) == y).sum())
                if n % 20 == 0:
                    print(f"batch {n}: loss {loss.item():.3f}, running acc {correct / (32 * n):.3f}")
                if time.monotonic() - start > limit:
                    done = True
                    break
        print(f"{n / (time.monotonic() - start):.2f} batches/s")


if __name__ == "__main__":
    train()
