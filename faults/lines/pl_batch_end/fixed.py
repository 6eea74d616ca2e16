"""Lightning: tabular MLP regressor with a snapshot callback."""
import copy
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CUDA = torch.cuda.is_available()
FEATURES = 64


def make_table(n=8192):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, FEATURES, generator=g)
    w = torch.randn(FEATURES, generator=g)
    y = torch.sin(x @ w / 4) + 0.1 * torch.randn(n, generator=g)
    return TensorDataset(x, y)


class SnapshotBest(L.Callback):
    """Keeps a copy of the weights with their norms so that a run can be rolled back."""

    def __init__(self, keep=3):
        self.keep = keep
        self.snapshots = []

    def on_train_epoch_end(self, trainer, pl_module):
        state = copy.deepcopy({k: v.cpu() for k, v in pl_module.state_dict().items()})
        stats = {k: (v.norm().item(), v.abs().max().item(), v.std().item()) for k, v in state.items()}
        self.snapshots.append((trainer.global_step, state, stats))
        self.snapshots = self.snapshots[-self.keep:]


class Regressor(L.LightningModule):
    def __init__(self, width, depth):
        super().__init__()
        layers = [nn.Linear(FEATURES, width), nn.ReLU()]
        for _ in range(depth):
            layers += [nn.Linear(width, width), nn.ReLU()]
        layers.append(nn.Linear(width, 1))
        self.net = nn.Sequential(*layers)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.mse_loss(self.net(x).squeeze(-1), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-2, momentum=0.9)


class TableData(L.LightningDataModule):
    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def setup(self, stage):
        self.table = make_table()

    def train_dataloader(self):
        return DataLoader(self.table, batch_size=self.batch, shuffle=True, drop_last=True,
                          num_workers=2 if CUDA else 0, persistent_workers=CUDA, pin_memory=CUDA)


def main():
    L.seed_everything(0)
    width, depth, batch = (2048, 4, 512) if CUDA else (512, 4, 16)
    trainer = L.Trainer(
        max_epochs=-1,
        max_time={"seconds": 14},
        accelerator="auto",
        devices=1,
        callbacks=[SnapshotBest()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.time()
    trainer.fit(Regressor(width, depth), datamodule=TableData(batch))
    print(f"{trainer.global_step} steps, {trainer.global_step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
