"""Lightning: transformer encoder on synthetic sensor windows."""
import tempfile
import time
from datetime import timedelta

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CUDA = torch.cuda.is_available()
CLASSES, STEPS, SENSORS = 6, 32, 12


def make_windows(n=6000):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    t = torch.linspace(0, 6.28, STEPS)
    wave = torch.sin(t[None, :] * (1 + y[:, None]))
    x = wave[:, :, None] + 0.5 * torch.randn(n, STEPS, SENSORS, generator=g)
    return TensorDataset(x, y)


class Encoder(L.LightningModule):
    def __init__(self, width, depth):
        super().__init__()
        self.inp = nn.Linear(SENSORS, width)
        self.pos = nn.Parameter(torch.zeros(1, STEPS, width))
        layer = nn.TransformerEncoderLayer(width, width // 32, 4 * width, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.enc(self.inp(x) + self.pos).mean(1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4)


def main():
    L.seed_everything(0)
    width, depth, batch = (512, 6, 256) if CUDA else (192, 4, 8)
    data = DataLoader(make_windows(), batch_size=batch, shuffle=True, drop_last=True,
                      num_workers=4 if CUDA else 0, persistent_workers=CUDA, pin_memory=CUDA)
    checkpoint = ModelCheckpoint(
        dirpath=tempfile.mkdtemp(),
        filename="last-{step}",
        every_n_train_steps=1000,
        save_top_k=1,
        save_last=True,
    )
    trainer = L.Trainer(
        max_epochs=-1,
        max_time=timedelta(seconds=14),
        accelerator="auto",
        devices=1,
        precision="bf16-mixed" if CUDA else "32-true",
        callbacks=[checkpoint],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.time()
    trainer.fit(Encoder(width, depth), data)
    print(f"{trainer.global_step} steps, {trainer.global_step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
