import random
import string
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont
from torch.utils.data import DataLoader, Dataset

ALPHABET = string.ascii_lowercase[:16]
SCAN = (640, 160)
INPUT = (128, 32)


def scan_line(rng: random.Random):
    text = "".join(rng.choice(ALPHABET) for _ in range(8))
    page = Image.new("L", (80, 20), rng.randint(210, 250))
    ImageDraw.Draw(page).text((6 + rng.randint(0, 8), 3 + rng.randint(0, 4)), text, fill=rng.randint(0, 80),
                              font=FONT)
    return page.resize(SCAN, Image.Resampling.BICUBIC), text


FONT = ImageFont.load_default_imagefont()


class Lines(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        pairs = [scan_line(rng) for _ in range(n)]
        self.scans = [scan.resize(INPUT, Image.Resampling.BILINEAR) for scan, _ in pairs]
        self.labels = torch.tensor([[ALPHABET.index(c) + 1 for c in text] for _, text in pairs])
        self.rng = random.Random(seed + 1)

    def __len__(self):
        return len(self.scans)

    def distort(self, image):
        r = self.rng
        image = image.rotate(r.uniform(-3, 3), Image.Resampling.BILINEAR, fillcolor=230)
        if r.random() < 0.7:
            image = image.filter(ImageFilter.GaussianBlur(r.uniform(1, 5) * INPUT[1] / SCAN[1]))
        return ImageEnhance.Contrast(image).enhance(r.uniform(0.7, 1.3))

    def __getitem__(self, i):
        image = self.distort(self.scans[i])
        pixels = torch.from_numpy(np.asarray(image, dtype=np.float32) / 127.5 - 1)
        return pixels.unsqueeze(0), self.labels[i]


class Reader(nn.Module):
    def __init__(self, width=14, hidden=64):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.MaxPool2d((2, 1)))
        self.rnn = nn.GRU(2 * width * INPUT[1] // 8, hidden, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, len(ALPHABET) + 1)

    def forward(self, x):
        h = self.conv(x)
        h = h.permute(0, 3, 1, 2).flatten(2)
        h, _ = self.rnn(h)
        return self.out(h).log_softmax(-1).transpose(0, 1)


def ctc(log_probs, labels):
    t, b, _ = log_probs.shape
    return F.ctc_loss(log_probs, labels, torch.full((b,), t), torch.full((b,), labels.shape[1]), zero_infinity=True)


def main():
    torch.manual_seed(111)
    loader = DataLoader(Lines(360, seed=111), batch_size=24, shuffle=True, drop_last=True)
    model = Reader()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, start, running = 0, time.monotonic(), True
    while running:
        for image, label in loader:
            loss = ctc(model(image), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            steps += 1
            if time.monotonic() - start > 12:
                running = False
                break
        print(f"{steps} steps, loss {loss.item():.3f}", flush=True)
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
