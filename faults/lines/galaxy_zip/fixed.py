"""Galaxy morphology classification; cutouts live in one zip archive."""
import io
import os
import tempfile
import time
import zipfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import functional as TF

N_CUTOUTS = 1000
CLASSES = 5
BATCH = 32
SECONDS = 14


def create_archive(path):
    rng = np.random.default_rng(11)
    yy, xx = np.mgrid[-1:1:48j, -1:1:48j]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for i in range(N_CUTOUTS):
            label = i % CLASSES
            blob = np.exp(-(xx ** 2 + yy ** 2 * (1 + label)) * 6) * 200
            img = (blob + rng.integers(0, 40, blob.shape)).astype(np.uint8)
            buf = io.BytesIO()
            Image.fromarray(img).save(buf, "PNG", compress_level=1)
            z.writestr(f"cutouts/{label}/{i:05d}.png", buf.getvalue())


class CutoutArchive(Dataset):
    def __init__(self, path):
        self.path = path
        self.archive = None
        with zipfile.ZipFile(path) as z:
            self.names = [n for n in z.namelist() if n.endswith(".png")]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        name = self.names[i]
        if self.archive is None:
            self.archive = zipfile.ZipFile(self.path)
        img = Image.open(io.BytesIO(self.archive.read(name)))
        x = TF.pil_to_tensor(img).float().div_(255)
        return x, int(name.split("/")[1])


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.GroupNorm(8, c), nn.SiLU(),
                                  nn.Conv2d(c, c, 3, padding=1), nn.GroupNorm(8, c))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def make_net():
    layers = [nn.Conv2d(1, 32, 5, stride=2, padding=2)]
    layers += [Residual(32), nn.Conv2d(32, 64, 3, stride=2, padding=1), Residual(64), Residual(64)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES)]
    return nn.Sequential(*layers)


def run(path):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = CutoutArchive(path)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=2,
                        persistent_workers=True, drop_last=True)
    net = make_net().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    ce = nn.CrossEntropyLoss()
    begin = time.time()
    count = 0
    running = torch.zeros((), device=device)
    while True:
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            opt.zero_grad()
            loss = ce(net(x), y)
            loss.backward()
            opt.step()
            running += loss.detach()
            count += 1
            if count % 100 == 0:
                print("step", count, "mean loss", round(running.item() / 100, 4))
                running.zero_()
            if time.time() - begin >= SECONDS:
                running.item()
                return count, time.time() - begin


if __name__ == "__main__":
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as d:
        archive = os.path.join(d, "galaxies.zip")
        create_archive(archive)
        steps, secs = run(archive)
    print("%.2f steps/s, %.1f samples/s" % (steps / secs, steps * BATCH / secs))
