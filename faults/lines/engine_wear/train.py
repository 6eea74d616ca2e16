"""Remaining life of engines from sensor windows, with Lightning."""
import logging
import os
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
CUDA = torch.cuda.is_available()
SENSORS, WINDOW, DIM, DEPTH, BATCH = (24, 256, 1024, 8, 128) if CUDA else (6, 16, 32, 2, 4)


class Windows(Dataset):
    """Hands out whole batches of windows."""

    def __init__(self, batches=96):
        g = torch.Generator().manual_seed(7)
        self.x = torch.randn(batches, BATCH, WINDOW, SENSORS, generator=g)
        self.y = self.x.mean((2, 3)) * 10

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i].clone(), self.y[i].clone()


class WearModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(SENSORS, DIM)
        self.place = nn.Parameter(torch.randn(WINDOW, DIM) * 0.02)
        layer = nn.TransformerEncoderLayer(DIM, 8, 4 * DIM, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, 1)

    def forward(self, x):
        return self.head(self.body(self.embed(x) + self.place).mean(1)).squeeze(1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.mse_loss(self(x).float(), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4, fused=CUDA)


class Timer(L.Callback):
    def __init__(self, seconds):
        self.seconds, self.start = seconds, None

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step == 8:
            self.start = time.time()
        elif self.start and time.time() - self.start > self.seconds:
            trainer.should_stop = True

    def on_train_end(self, trainer, module):
        print(f"{(trainer.global_step - 8) / (time.time() - self.start):.2f} steps/s")


def main():
    L.seed_everything(0, verbose=False)
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(
        Windows(), batch_size=None, shuffle=True, num_workers=4 if CUDA else 0, pin_memory=CUDA, persistent_workers=CUDA,
    )
    trainer = L.Trainer(
        accelerator="gpu" if CUDA else "cpu", devices=1, precision="bf16-mixed" if CUDA else "32-true", max_epochs=-1,
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[Timer(float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))],
    )
    trainer.fit(WearModel(), loader)


if __name__ == "__main__":
    main()
