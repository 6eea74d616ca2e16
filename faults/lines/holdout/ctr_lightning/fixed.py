import time
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchmetrics.classification import BinaryAUROC

warnings.filterwarnings("ignore", ".*does not have many workers.*")
FIELDS = [50, 200, 12, 1000, 7, 24, 300, 90, 31, 500]


class Impressions(Dataset):
    """Whole batches are cut from tensors in memory: an item is a list of rows."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.cat = torch.stack([(torch.rand(n, generator=g).square() * size).long() for size in FIELDS], 1)
        self.num = torch.randn(n, 8, generator=g)
        effect = sum(torch.randn(size, generator=g)[self.cat[:, j]] for j, size in enumerate(FIELDS)) / 3
        logit = effect + self.num[:, 0] - 0.5 * self.num[:, 1] * self.num[:, 2] - 1
        self.click = (torch.rand(n, generator=g) < logit.sigmoid()).long()

    def __len__(self):
        return len(self.click)

    def __getitems__(self, idx):
        idx = torch.tensor(idx)
        return self.cat[idx], self.num[idx], self.click[idx]


class CrossLayer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = nn.Linear(d, d)

    def forward(self, x0, x):
        return x0 * self.lin(x) + x


class ClickModel(L.LightningModule):
    def __init__(self, dim=12, hidden=192, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.register_buffer("start", torch.tensor([0, *FIELDS[:-1]]).cumsum(0))
        self.table = nn.Embedding(sum(FIELDS), dim)
        width = dim * len(FIELDS) + 8
        self.cross = nn.ModuleList([CrossLayer(width), CrossLayer(width)])
        self.deep = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.out = nn.Linear(width + hidden, 1)
        self.auroc = BinaryAUROC()

    def forward(self, cat, num):
        x0 = torch.cat([self.table(cat + self.start).flatten(1), num], 1)
        x = x0
        for layer in self.cross:
            x = layer(x0, x)
        return self.out(torch.cat([x, self.deep(x0)], 1)).squeeze(1)

    def training_step(self, batch, batch_idx):
        cat, num, click = batch
        logit = self(cat, num)
        loss = F.binary_cross_entropy_with_logits(logit, click.float())
        self.auroc.update(logit.detach().sigmoid(), click)
        if self.global_step % 200 == 199:
            self.log("auroc", self.auroc.compute())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class TimeLimit(L.Callback):
    def __init__(self, seconds):
        self.seconds = seconds

    def on_train_start(self, trainer, module):
        self.begin = time.monotonic()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if time.monotonic() - self.begin > self.seconds:
            trainer.should_stop = True


def main():
    L.seed_everything(151, verbose=False)
    loader = DataLoader(Impressions(600_000, seed=151), batch_size=1024, shuffle=True, drop_last=True,
                        collate_fn=lambda batch: batch)
    trainer = L.Trainer(
        accelerator="cpu", max_epochs=50, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[TimeLimit(12)])
    trainer.fit(ClickModel(), loader)
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})
    print(f"steps: {trainer.global_step}")


if __name__ == "__main__":
    main()
