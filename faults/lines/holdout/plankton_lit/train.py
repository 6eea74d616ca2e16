"""Plankton imagery classifier (Lightning)."""
import logging
import tempfile
import time
import warnings

import lightning as L
import torch
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities import grad_norm
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class PlanktonBatches(Dataset):
    """Pre-batched crops; one item is a whole batch."""

    def __init__(self, n_batches=120, batch=32, size=24, classes=10):
        g = torch.Generator().manual_seed(6)
        templates = torch.randn(classes, 1, size, size, generator=g)
        self.y = torch.randint(0, classes, (n_batches, batch), generator=g)
        self.x = templates[self.y] + 0.8 * torch.randn(n_batches, batch, 1, size, size, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class DepthwiseBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw = nn.Conv2d(c, c, 3, padding=1, groups=c)
        self.norm = nn.GroupNorm(1, c)
        self.up = nn.Conv2d(c, 2 * c, 1)
        self.down = nn.Conv2d(2 * c, c, 1)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(self.dw(x)))))


class PlanktonNet(L.LightningModule):
    def __init__(self, width=16, depth=24, classes=10, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.stem = nn.Conv2d(1, width, 4, stride=4)
        self.blocks = nn.Sequential(*[DepthwiseBlock(width) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=False)
        return loss

    def on_before_optimizer_step(self, optimizer):
        norms = grad_norm(self, norm_type=2)
        self.log_dict(norms)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(opt, 0.98)}


class Stopwatch(L.Callback):
    def __init__(self, limit):
        self.limit, self.t0, self.n = limit, None, 0

    def on_train_start(self, trainer, module):
        self.t0 = time.monotonic()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.n += 1
        if time.monotonic() - self.t0 > self.limit:
            trainer.should_stop = True

    def on_train_epoch_end(self, trainer, module):
        print(f"epoch {trainer.current_epoch} loss {float(trainer.callback_metrics['train_loss']):.4f}")

    def on_train_end(self, trainer, module):
        print(f"{self.n} steps, {self.n / (time.monotonic() - self.t0):.2f} steps/s")


def main():
    L.seed_everything(6, verbose=False)
    loader = DataLoader(PlanktonBatches(), batch_size=None, shuffle=True)
    trainer = L.Trainer(
        accelerator="cpu", max_epochs=1000, callbacks=[Stopwatch(18.0)], enable_checkpointing=False,
        logger=CSVLogger(tempfile.mkdtemp()), log_every_n_steps=50, enable_progress_bar=False,
        enable_model_summary=False, gradient_clip_val=1.0,
    )
    trainer.fit(PlanktonNet(), loader)


if __name__ == "__main__":
    main()
