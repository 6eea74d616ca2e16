"""
ECG beats -> arrhythmia class. Plain loop, one worker, workers not kept between epochs.
"""
import time

import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class Beats(Dataset):
    """Raw 12-lead strips as int16; scaled and shifted a little on the way out."""

    def __init__(self, n=3200, length=500, seed=40):
        g = torch.Generator().manual_seed(seed)
        self.label = torch.randint(0, 5, (n,), generator=g)
        t = torch.linspace(0, 12, length)
        wave = torch.stack([torch.sin(t * (k + 2)) for k in range(5)])[self.label]
        noise = torch.randn(n, 12, length, generator=g)
        self.strip = ((wave[:, None] + 0.7 * noise) * 1000).to(torch.int16)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        strip = self.strip[i].float() / 1000
        return torch.roll(strip, int(torch.randint(-20, 21, ())), dims=-1), self.label[i]


class ResBlock(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.a = nn.Conv1d(c_in, c_out, 7, stride=2, padding=3, bias=False)
        self.b = nn.Conv1d(c_out, c_out, 7, padding=3, bias=False)
        self.skip = nn.Conv1d(c_in, c_out, 1, stride=2, bias=False)
        self.n1, self.n2 = nn.BatchNorm1d(c_out), nn.BatchNorm1d(c_out)

    def forward(self, x):
        y = torch.relu(self.n1(self.a(x)))
        return torch.relu(self.n2(self.b(y)) + self.skip(x))


def get_model():
    return nn.Sequential(
        ResBlock(12, 48), ResBlock(48, 96), ResBlock(96, 96), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(96, 5)
    )


def fit(model, loader, epochs):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2, fused=True)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        t = time.monotonic()
        for step, (x, y) in enumerate(loader):
            loss = loss_fn(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if step % 25 == 0:
                print(f"[{epoch}:{step:03d}] {loss.item():.4f}", flush=True)
        print(f"epoch {epoch} took {time.monotonic() - t:.1f}s")


if __name__ == "__main__":
    torch.manual_seed(40)
    loader = DataLoader(Beats(), batch_size=64, shuffle=True, num_workers=1, persistent_workers=False)
    fit(get_model(), loader, epochs=3)
