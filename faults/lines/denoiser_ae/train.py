import gc
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class ConvAutoencoder(nn.Module):
    def __init__(self, ch=24):
        super().__init__()
        self.down1 = nn.Conv2d(1, ch, 3, stride=2, padding=1)
        self.down2 = nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(2 * ch, 2 * ch, 3, padding=1)
        self.up1 = nn.ConvTranspose2d(2 * ch, ch, 4, stride=2, padding=1)
        self.up2 = nn.ConvTranspose2d(ch, 1, 4, stride=2, padding=1)

    def forward(self, x):
        h = F.relu(self.down1(x))
        h = F.relu(self.down2(h))
        h = F.relu(self.mid(h))
        h = F.relu(self.up1(h))
        return self.up2(h)


def blobs(n=6000, size=28):
    g = torch.Generator().manual_seed(4)
    grid = torch.linspace(-1, 1, size)
    cx, cy = torch.rand(2, n, 1, 1, generator=g) * 1.4 - 0.7
    w = torch.rand(n, 1, 1, generator=g) * 0.1 + 0.02
    img = torch.exp(-((grid[None, None, :] - cx) ** 2 + (grid[None, :, None] - cy) ** 2) / w)
    return img.unsqueeze(1)


class Denoising:
    def __init__(self):
        self.clean = blobs().to(device)
        self.model = ConvAutoencoder().to(device)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.batch_size = 1024 if device == "cuda" else 448
        self.step = 0

    def train_batch(self, target):
        noisy = target + 0.3 * torch.randn_like(target)
        loss = F.mse_loss(self.model(noisy), target)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.step += 1
        return loss.detach()

    def release_memory(self):
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()

    def fit(self, budget=14.0):
        t0 = time.perf_counter()
        epoch = 0
        while True:
            total, batches = torch.zeros((), device=device), 0
            for idx in torch.randperm(len(self.clean), device=device).split(self.batch_size):
                loss = self.train_batch(self.clean[idx])
                total += loss
                batches += 1
                if self.step % 100 == 0:
                    print(f"  step {self.step} mse {loss.item():.5f}")
                self.release_memory()
                if time.perf_counter() - t0 > budget:
                    if device == "cuda":
                        torch.cuda.synchronize()
                    return time.perf_counter() - t0
            print(f"epoch {epoch} mean mse {total.item() / batches:.5f}")
            epoch += 1


if __name__ == "__main__":
    torch.manual_seed(0)
    job = Denoising()
    secs = job.fit()
    print(f"{job.step / secs:.2f} steps/s | {job.step * job.batch_size / secs:.1f} samples/s")
