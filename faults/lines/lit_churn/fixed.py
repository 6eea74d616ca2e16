"""Customer churn, tabular, Lightning."""
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAUROC, BinaryAveragePrecision

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class ChurnData(L.LightningDataModule):
    def __init__(self, n=80000, batch_size=256):
        super().__init__()
        self.n, self.batch_size = n, batch_size

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(21)
        num = torch.randn(self.n, 24, generator=g)
        cat = torch.randint(0, 30, (self.n, 4), generator=g)
        eff = torch.randn(4, 30, generator=g)
        logit = num[:, :5].sum(1) * 0.6 + num[:, 6] * num[:, 7] + eff[torch.arange(4), cat].sum(1) * 0.4 - 1
        y = (torch.rand(self.n, generator=g) < torch.sigmoid(logit)).float()
        k = int(self.n * 0.9)
        self.tr = TensorDataset(num[:k], cat[:k], y[:k])
        self.va = TensorDataset(num[k:], cat[k:], y[k:])

    def loader(self, ds, shuffle):
        sampler = torch.utils.data.BatchSampler(
            torch.utils.data.RandomSampler(ds) if shuffle else torch.utils.data.SequentialSampler(ds),
            self.batch_size, drop_last=False)
        return DataLoader(ds, sampler=sampler, batch_size=None)

    def train_dataloader(self):
        return self.loader(self.tr, True)

    def val_dataloader(self):
        return self.loader(self.va, False)


class ChurnModel(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.emb = nn.ModuleList(nn.Embedding(30, 8) for _ in range(4))
        self.net = nn.Sequential(
            nn.Linear(24 + 32, 256), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(256, 1),
        )
        self.train_auroc = BinaryAUROC()
        self.train_ap = BinaryAveragePrecision()
        self.val_auroc = BinaryAUROC()

    def forward(self, num, cat):
        e = [m(cat[:, i]) for i, m in enumerate(self.emb)]
        return self.net(torch.cat([num, *e], 1)).squeeze(1)

    def training_step(self, batch, batch_idx):
        num, cat, y = batch
        logits = self(num, cat)
        loss = F.binary_cross_entropy_with_logits(logits, y)
        p = logits.detach().sigmoid()
        self.train_auroc.update(p, y.int())
        self.train_ap.update(p, y.int())
        self.log("train_loss", loss)
        if batch_idx % 50 == 0:
            print(f"epoch {self.current_epoch} batch {batch_idx} loss {loss.item():.4f}", flush=True)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} train AUROC {self.train_auroc.compute():.4f} "
              f"AP {self.train_ap.compute():.4f}", flush=True)
        self.train_auroc.reset()
        self.train_ap.reset()

    def validation_step(self, batch, batch_idx):
        num, cat, y = batch
        self.val_auroc.update(self(num, cat).sigmoid(), y.int())

    def on_validation_epoch_end(self):
        print(f"val AUROC {self.val_auroc.compute():.4f}", flush=True)
        self.val_auroc.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(5)
    trainer = L.Trainer(
        max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )
    trainer.fit(ChurnModel(), datamodule=ChurnData())


if __name__ == "__main__":
    main()
