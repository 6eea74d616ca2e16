import time

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def gauges(stations, hours, seed):
    """River levels: season, rain bursts that decay, noise."""
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(hours)
    season = torch.sin(2 * torch.pi * t / 2000 + 6.28 * torch.rand(stations, 1, generator=g))
    rain = (torch.rand(stations, hours, generator=g) < 0.01).float() * torch.rand(stations, hours, generator=g) * 4
    kernel = torch.exp(-torch.arange(100.0) / 25).view(1, 1, -1)
    burst = F.conv1d(F.pad(rain.unsqueeze(1), (99, 0)), kernel.flip(-1)).squeeze(1)
    level = season + burst + 0.05 * torch.randn(stations, hours, generator=g)
    return torch.stack([level, rain], 1)


class Windows(Dataset):
    def __init__(self, series, past, future, stride):
        self.series, self.past, self.future = series, past, future
        starts = range(0, series.shape[-1] - past - future, stride)
        self.index = [(s, t) for s in range(len(series)) for t in starts]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        s, t = self.index[i]
        mid = t + self.past
        return self.series[s, :, t:mid], self.series[s, 0, mid:mid + self.future]


class Dilated(nn.Module):
    def __init__(self, c, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.gate = nn.Conv1d(c, 2 * c, 3, dilation=dilation)
        self.mix = nn.Conv1d(c, c, 1)

    def forward(self, x):
        a, b = self.gate(F.pad(x, (self.pad, 0))).chunk(2, 1)
        return x + self.mix(torch.tanh(a) * torch.sigmoid(b))


class RiverNet(L.LightningModule):
    def __init__(self, channels=40, future=24):
        super().__init__()
        self.enter = nn.Conv1d(2, channels, 1)
        self.stack = nn.Sequential(*[Dilated(channels, 2**k) for k in range(5)])
        self.out = nn.Sequential(nn.Linear(channels, 128), nn.GELU(), nn.Linear(128, future))

    def forward(self, x):
        return self.out(self.stack(self.enter(x))[..., -1])

    def training_step(self, batch, _):
        x, y = batch
        loss = F.huber_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_mae", F.l1_loss(self(x), y), batch_size=len(x))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class StopWatch(L.Callback):
    def __init__(self, seconds):
        self.seconds, self.begin = seconds, None

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        self.begin = self.begin or time.monotonic()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if time.monotonic() - self.begin > self.seconds:
            trainer.should_stop = True


def main():
    L.seed_everything(211, verbose=False)
    series = gauges(24, 6000, seed=211)
    train = DataLoader(Windows(series[:, :, :5500], 192, 24, stride=4), batch_size=32, shuffle=True, drop_last=True,
                       num_workers=1, persistent_workers=True, prefetch_factor=4)
    val = DataLoader(Windows(series[:, :, 5500:], 192, 24, stride=48), batch_size=64)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=20,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[StopWatch(12)],
    )
    trainer.fit(RiverNet(), train, val)
    print(f"steps: {trainer.global_step}")


if __name__ == "__main__":
    main()
