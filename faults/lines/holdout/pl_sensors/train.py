"""Fault detection from multichannel sensor windows, PyTorch Lightning + TensorBoard."""
import logging
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.loggers import TensorBoardLogger
from torch import nn

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class SensorData(L.LightningDataModule):
    def __init__(self, n=6400, channels=6, length=64, batch_size=64):
        super().__init__()
        self.batch_size = batch_size
        g = torch.Generator().manual_seed(2)
        t = torch.arange(length) / length
        freq = torch.rand(n, channels, 1, generator=g) * 4 + 2
        x = torch.sin(6.283 * freq * t) + 0.3 * torch.randn(n, channels, length, generator=g)
        y = torch.randint(0, 4, (n,), generator=g)
        bump = torch.exp(-((t - 0.5) * 12) ** 2)
        for fault in range(1, 4):
            x[y == fault, fault] += 1.5 * bump
        self.x, self.y = x, y

    def batches(self, lo, hi, shuffle):
        dataset = torch.utils.data.TensorDataset(self.x[lo:hi], self.y[lo:hi])
        order = torch.utils.data.RandomSampler(dataset) if shuffle else torch.utils.data.SequentialSampler(dataset)
        sampler = torch.utils.data.BatchSampler(order, self.batch_size, drop_last=False)
        return torch.utils.data.DataLoader(dataset, sampler=sampler, batch_size=None)

    def train_dataloader(self):
        return self.batches(0, 5760, True)

    def val_dataloader(self):
        return self.batches(5760, 6400, False)


class WeightMonitor(L.Callback):
    """Shows weight and gradient distributions in TensorBoard."""

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        board = trainer.logger.experiment
        for name, parameter in pl_module.named_parameters():
            board.add_histogram(f"weights/{name}", parameter, trainer.global_step)
            board.add_histogram(f"gradients/{name}", parameter.grad, trainer.global_step)


class FaultClassifier(L.LightningModule):
    def __init__(self, channels=6, width=48, classes=4):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(channels, width, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv1d(width, width * 2, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv1d(width * 2, width * 2, 5, stride=2, padding=2), nn.GELU(),
            nn.Flatten(), nn.Linear(width * 2 * 8, 128), nn.GELU(), nn.Linear(128, classes),
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        self.log("val_loss", F.cross_entropy(logits, y), batch_size=len(y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean(), batch_size=len(y))

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch} train {m['train_loss']:.4f} val {m['val_loss']:.4f} acc {m['val_acc']:.3f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    L.seed_everything(2, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            max_epochs=6, accelerator="cpu", logger=TensorBoardLogger(folder), callbacks=[WeightMonitor()],
            log_every_n_steps=20, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, num_sanity_val_steps=0,
        )
        trainer.fit(FaultClassifier(), datamodule=SensorData())
