"""Segment CT slices that are kept on a network share (stood in for by a local class)."""
import threading
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Share:
    """Stand-in for the institute's object store: serial requests, fixed round trip."""

    def __init__(self, n=600, size=40, round_trip=0.0025, seed=2):
        rng = np.random.default_rng(seed)
        self._slices = rng.standard_normal((n, 1, size, size), dtype=np.float32)
        self._round_trip = round_trip
        self._lock = threading.Lock()

    def keys(self):
        return list(range(len(self._slices)))

    def read(self, key):
        with self._lock:
            time.sleep(self._round_trip)
            return self._slices[key].copy()

    def read_many(self, keys):
        with self._lock:
            time.sleep(self._round_trip)
            return self._slices[keys]


class Slices(Dataset):
    def __init__(self, share):
        self.share = share
        self.keys = share.keys()

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, i):
        image = torch.from_numpy(self.share.read(self.keys[i]))
        return image, (image > 0.3).float()


class Double(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
                         nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.d1, self.d2, self.mid = Double(1, c), Double(c, 2 * c), Double(2 * c, 4 * c)
        self.u2, self.u1 = Double(6 * c, 2 * c), Double(3 * c, c)
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        u = self.u2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
        return self.out(self.u1(torch.cat([F.interpolate(u, scale_factor=2), a], 1)))


def train(share, batch_size=24, lr=1e-3, seconds=14.0):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(Slices(share), batch_size=batch_size, shuffle=True, drop_last=True)
    net = UNet().to(device)
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    step, epoch, t0 = 0, 0, time.perf_counter()
    while True:
        for image, mask in loader:
            image, mask = image.to(device), mask.to(device)
            loss = F.binary_cross_entropy_with_logits(net(image), mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            elapsed = time.perf_counter() - t0
            if elapsed > seconds:
                return step / elapsed, step * batch_size / elapsed
        epoch += 1
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(2)
    steps_s, samples_s = train(Share())
    print(f"{steps_s:.2f} steps/s, {samples_s:.1f} samples/s")
