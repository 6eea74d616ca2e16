import time

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset


class GestureWindows(Dataset):
    """Six-channel wrist sensor recordings with a random crop and gain per draw."""

    def __init__(self, people=4, gestures=8, repeats=8, length=160, crop=128, seed=161):
        rng = np.random.default_rng(seed)
        t = np.linspace(0, 1, length)
        self.crop = crop
        rows, labels = [], []
        for _ in range(people):
            style = rng.normal(1, 0.1, (6, 1))
            for k in range(gestures):
                shape = np.random.default_rng(k).normal(size=(6, 3, 1))
                for _ in range(repeats):
                    wave = sum(shape[:, h] * np.sin(2 * np.pi * (h + 1) * (t + rng.normal(0, 0.02))) for h in range(3))
                    rows.append(style * wave + 0.4 * rng.standard_normal((6, length)))
                    labels.append(k)
        self.rows = np.stack(rows).astype(np.float32)
        self.labels = np.array(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        lo = np.random.randint(self.rows.shape[-1] - self.crop)
        gain = np.float32(np.random.uniform(0.8, 1.2))
        return self.rows[i, :, lo:lo + self.crop] * gain, self.labels[i]


class Attend(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        h = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(h.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class GestureNet(nn.Module):
    def __init__(self, d=48, gestures=8):
        super().__init__()
        self.stem = nn.Conv1d(6, d, 8, 4, 2)
        self.pos = nn.Parameter(torch.zeros(1, 32, d))
        self.layers = nn.Sequential(Attend(d, 4))
        self.head = nn.Linear(d, gestures)

    def forward(self, x):
        h = self.stem(x).transpose(1, 2) + self.pos
        return self.head(self.layers(h).mean(1))


def make_loader(data, batch):
    return DataLoader(
        data,
        batch_size=batch,
        shuffle=True,
        num_workers=2,
        drop_last=True,
    )


def main(seconds=12.0, batch=64):
    set_seed(161)
    accelerator = Accelerator(cpu=True)
    model = GestureNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = make_loader(GestureWindows(), batch)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

    steps = epoch = 0
    start = None
    while start is None or time.monotonic() - start < seconds:
        model.train()
        for x, y in loader:
            start = start or time.monotonic()
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            steps += 1
        epoch += 1
        if epoch % 20 == 0:
            accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
    accelerator.print(f"steps: {steps}")


if __name__ == "__main__":
    main()
