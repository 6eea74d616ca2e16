"""Vessel segmentation in fundus photographs (Lightning)."""
import time

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
ON_GPU = device == "cuda"
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = True
SIDE, BATCH, BASE, PHOTOS = (512, 16, 64, 96) if ON_GPU else (32, 4, 8, 16)


class FundusBatches(IterableDataset):
    """Photos and masks live on the device; yields ready batches."""

    def __init__(self):
        g = torch.Generator(device=device).manual_seed(5)
        self.x = torch.rand(PHOTOS, 3, SIDE, SIDE, device=device, generator=g)
        soft = F.avg_pool2d(self.x.mean(1, keepdim=True), 9, 1, 4)
        self.y = (soft > soft.mean()).float()

    def __iter__(self):
        while True:
            idx = torch.randint(0, PHOTOS, (BATCH,), device=device)
            yield self.x[idx].contiguous(memory_format=torch.channels_last), self.y[idx]


def double(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class VesselNet(L.LightningModule):
    def __init__(self, b=BASE):
        super().__init__()
        self.d1, self.d2, self.d3 = double(3, b), double(b, 2 * b), double(2 * b, 4 * b)
        self.u2, self.u1 = nn.ConvTranspose2d(4 * b, 2 * b, 2, 2), nn.ConvTranspose2d(2 * b, b, 2, 2)
        self.m2, self.m1 = double(4 * b, 2 * b), double(2 * b, b)
        self.head = nn.Conv2d(b, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        b = self.m2(torch.cat([self.u2(c), b], 1))
        a = self.m1(torch.cat([self.u1(b), a], 1))
        return self.head(a)

    def training_step(self, batch, _):
        x, y = batch
        logits = self(x).float()
        p = logits.sigmoid()
        dice = 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
        return F.binary_cross_entropy_with_logits(logits, y) + dice

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)


class Housekeeping(L.Callback):
    def __init__(self, limit):
        self.limit = limit

    def on_train_start(self, trainer, module):
        self.t0 = time.monotonic()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if batch_idx and batch_idx % 50 == 0:
            print(f"batch {batch_idx}: loss {outputs['loss'].item():.4f}")
        if time.monotonic() - self.t0 > self.limit:
            trainer.should_stop = True

    def on_train_end(self, trainer, module):
        dt = time.monotonic() - self.t0
        print(f"{trainer.global_step} steps, {trainer.global_step * BATCH / dt:.1f} photos/s")


if __name__ == "__main__":
    L.seed_everything(5, verbose=False)
    net = VesselNet().to(memory_format=torch.channels_last)
    trainer = L.Trainer(
        accelerator="gpu" if ON_GPU else "cpu", devices=1, precision="bf16-mixed" if ON_GPU else "32-true",
        max_epochs=1, callbacks=[Housekeeping(18)], logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(net, DataLoader(FundusBatches(), batch_size=None))
