import io
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

CONFIG = {
    "photos": 240,
    "source_size": (1280, 960),
    "input_size": (80, 60),
    "batch_size": 24,
    "lr": 2e-3,
    "seconds": float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)),
}


def take_photos(folder, count, size):
    rng = np.random.default_rng(5)
    for i in range(count):
        small = rng.integers(0, 255, (15, 20, 3), dtype=np.uint8)
        small[..., i % 3] //= 3
        photo = Image.fromarray(small).resize(size, Image.BICUBIC)
        photo.save(folder / f"{i:04d}_{i % 3}.jpg", quality=88)


class Photos(Dataset):
    def __init__(self, folder, input_size):
        self.files = sorted(folder.glob("*.jpg"))
        self.input_size = input_size

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        path = self.files[i]
        image = Image.open(path)
        image.draft("RGB", (self.input_size[0] * 2, self.input_size[1] * 2))
        image = image.convert("RGB")
        image = image.resize(self.input_size, Image.BILINEAR)
        pixels = torch.from_numpy(np.asarray(image, dtype=np.float32).copy()).permute(2, 0, 1) / 255
        return pixels - 0.5, int(path.stem.split("_")[1])


def build_model():
    def stage(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

    return nn.Sequential(stage(3, 32), stage(32, 64), stage(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 3))


def train(config):
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        take_photos(folder, config["photos"], config["source_size"])
        loader = DataLoader(Photos(folder, config["input_size"]), config["batch_size"], shuffle=True, drop_last=True)
        model = build_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
        criterion = nn.CrossEntropyLoss()
        count, t0 = 0, 0.0
        while True:
            for images, tiles in loader:
                optimizer.zero_grad(set_to_none=True)
                loss = criterion(model(images), tiles)
                loss.backward()
                optimizer.step()
                count += 1
                if count == 3:
                    t0 = time.monotonic()
                elif count > 3 and time.monotonic() - t0 > config["seconds"]:
                    return (count - 3) / (time.monotonic() - t0)


if __name__ == "__main__":
    print("steps/s: %.2f" % train(CONFIG))
