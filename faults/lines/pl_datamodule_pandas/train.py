"""Lightning: taxi-fare regression from a pandas table."""
import time

import lightning as L
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
NUMERIC = ["distance", "duration", "hour", "temp", "surge"] + [f"x{i}" for i in range(10)]


def make_frame(n=20000):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(n, len(NUMERIC))).astype(np.float32), columns=NUMERIC)
    df["zone"] = rng.integers(0, 200, n)
    df["vendor"] = rng.integers(0, 5, n)
    df["fare"] = 2 * df["distance"] + df["duration"] * df["surge"] + 0.01 * df["zone"]
    return df


class TripDataset(Dataset):
    def __init__(self, df):
        self.df = df

    def __len__(self):
        return len(self.df)

    def __getitem__(self, i):
        row = self.df.iloc[i]
        x = torch.tensor(row[NUMERIC].to_numpy(dtype=np.float32))
        cats = torch.tensor([int(row["zone"]), int(row["vendor"])])
        return x, cats, torch.tensor(row["fare"], dtype=torch.float32)


class TripData(L.LightningDataModule):
    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def setup(self, stage):
        self.train = TripDataset(make_frame())

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch, shuffle=True, drop_last=True, num_workers=2,
                          persistent_workers=True, pin_memory=CUDA)


class FareNet(L.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.zone = nn.Embedding(200, 16)
        self.vendor = nn.Embedding(5, 4)
        self.mlp = nn.Sequential(nn.Linear(len(NUMERIC) + 20, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def training_step(self, batch, batch_idx):
        x, cats, y = batch
        h = torch.cat([x, self.zone(cats[:, 0]), self.vendor(cats[:, 1])], dim=1)
        return nn.functional.huber_loss(self.mlp(h).squeeze(-1), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(0)
    width, batch = (2048, 128) if CUDA else (256, 128)
    trainer = L.Trainer(max_epochs=-1, max_time={"seconds": 14}, accelerator="auto", devices=1, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    start = time.time()
    trainer.fit(FareNet(width), datamodule=TripData(batch))
    print(f"{trainer.global_step} steps, {trainer.global_step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
