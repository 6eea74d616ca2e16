"""Ship arrivals per berth, trained with Lightning."""
import logging
import os
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Arrivals(L.LightningDataModule):
    def setup(self, stage=None):
        g = torch.Generator().manual_seed(1)
        x = torch.randn(40_000, 96, generator=g)
        y = (x @ torch.randn(96, 24, generator=g) * 0.2).relu()
        self.train_set = TensorDataset(x[:32_000], y[:32_000])
        self.valid_set = TensorDataset(x[32_000:], y[32_000:])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=256, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.valid_set, batch_size=512)


class BerthModel(L.LightningModule):
    def __init__(self, width=768):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(96, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 24))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.mse_loss(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Clock(L.Callback):
    def __init__(self, seconds, warmup=4):
        self.seconds, self.warmup, self.start = seconds, warmup, None

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        step = trainer.global_step
        if step == self.warmup:
            self.start = time.time()
        elif self.start and time.time() - self.start > self.seconds:
            print(f"{(step - self.warmup) / (time.time() - self.start):.2f} steps per second")
            trainer.should_stop = True
            self.start = None


def main():
    L.seed_everything(0, verbose=False)
    clock = Clock(float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))
    trainer = L.Trainer(
        max_epochs=1000,
        accelerator="cpu",
        val_check_interval=10,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[clock],
    )
    trainer.fit(BerthModel(), datamodule=Arrivals())


if __name__ == "__main__":
    main()
