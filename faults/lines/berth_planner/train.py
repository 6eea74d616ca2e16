import logging
import os
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Requests(Dataset):
    def __init__(self, n=24_000):
        g = torch.Generator().manual_seed(4)
        self.x = torch.randn(n, 20, 16, generator=g)
        self.y = self.x.mean(1).argmax(1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, rows):
        return self.x[rows], self.y[rows]


class Planner(L.LightningModule):
    def __init__(self, dim=192):
        super().__init__()
        self.embed = nn.Linear(16, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, dim * 3, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 16)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.head(self.encoder(self.embed(x)).mean(1)), y)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=5e-4)


class StopAfter(L.Callback):
    def __init__(self, seconds):
        self.seconds = seconds
        self.begin = None

    def on_train_batch_end(self, trainer, *unused):
        if trainer.global_step == 4:
            self.begin = time.time()
        elif self.begin and time.time() - self.begin > self.seconds:
            trainer.should_stop = True

    def on_train_end(self, trainer, module):
        print(f"{(trainer.global_step - 4) / (time.time() - self.begin):.3f} steps per second")


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    data = Requests()
    loader = DataLoader(data, sampler=BatchSampler(RandomSampler(data), 128, drop_last=True), batch_size=None)
    trainer = L.Trainer(
        accelerator="cpu", max_epochs=-1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[StopAfter(float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))],
    )
    trainer.fit(Planner(), loader)
