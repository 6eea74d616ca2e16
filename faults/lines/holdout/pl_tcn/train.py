"""One-step-ahead forecasting of coupled oscillators with a dilated causal convolution network."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


def simulate(steps, channels, seed):
    rng = np.random.default_rng(seed)
    coupling = 0.1 * rng.standard_normal((channels, channels))
    speed = rng.uniform(0.05, 0.3, channels)
    phase, rows = rng.uniform(0, 6.28, channels), []
    for _ in range(steps):
        phase = phase + speed + coupling @ np.sin(phase) * 0.2
        rows.append(np.sin(phase))
    series = np.stack(rows, axis=1) + 0.05 * rng.standard_normal((channels, steps))
    return torch.from_numpy(series.astype(np.float32))


class Windows(Dataset):
    def __init__(self, series, length):
        self.windows = series.unfold(1, length, 4).permute(1, 0, 2)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, index):
        return self.windows[index]


def loader(dataset, batch_size, shuffle):
    order = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
    return DataLoader(dataset, batch_size=None, sampler=BatchSampler(order, batch_size, drop_last=False))


class CausalConv(nn.Module):
    def __init__(self, n_in, n_out, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(n_in, n_out, 3, dilation=dilation)

    def forward(self, x):
        return F.relu(self.conv(F.pad(x, (self.pad, 0))))


class TCN(L.LightningModule):
    def __init__(self, channels, width=64):
        super().__init__()
        self.first = CausalConv(channels, width, 1)
        self.rest = nn.ModuleList(CausalConv(width, width, d) for d in (2, 4, 8, 16))
        self.out = nn.Conv1d(width, channels, 1)

    def forward(self, x):
        h = self.first(x)
        for layer in self.rest:
            h = h + layer(h)
        return self.out(h)

    def step(self, window):
        return F.mse_loss(self(window[:, :, :-1]), window[:, :, 1:])

    def training_step(self, window, _):
        loss = self.step(window)
        self.log("train_mse", loss, on_step=False, on_epoch=True, batch_size=len(window))
        return loss

    def validation_step(self, window, _):
        self.log("val_mse", self.step(window), batch_size=len(window))

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: train {m['train_mse']:.4f} val {m['val_mse']:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


if __name__ == "__main__":
    L.seed_everything(13, verbose=False)
    series = simulate(8000, 8, seed=13)
    train, valid = Windows(series[:, :7200], 128), Windows(series[:, 7200:], 128)
    trainer = L.Trainer(
        max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(TCN(8), loader(train, 64, True), loader(valid, 128, False))
