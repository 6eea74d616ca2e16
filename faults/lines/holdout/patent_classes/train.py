"""Patent section classification: length-bucketed batches, small transformer, Lightning."""
import logging
import random
import tempfile
import time
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
SECTIONS, VOCAB = 8, 3000


class Claims(Dataset):
    def __init__(self, n, seed):
        rnd = random.Random(seed)
        words = [[f"w{rnd.randrange(VOCAB // 2)}" for _ in range(rnd.randint(30, 160))] for _ in range(n)]
        self.labels = [rnd.randrange(SECTIONS) for _ in range(n)]
        for w, lab in zip(words, self.labels):
            for _ in range(len(w) // 6):
                w[rnd.randrange(len(w))] = f"w{VOCAB // 2 + 100 * lab + rnd.randrange(100)}"
        self.ids = [torch.tensor([int(t[1:]) + 1 for t in w]) for w in words]

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i], self.labels[i]


class BucketBatches(Sampler):
    def __init__(self, lengths, size, seed=0):
        self.lengths, self.size, self.rnd = lengths, size, random.Random(seed)

    def __len__(self):
        return len(self.lengths) // self.size

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=lambda i: self.lengths[i] + self.rnd.random() * 8)
        batches = [order[i * self.size:(i + 1) * self.size] for i in range(len(self))]
        self.rnd.shuffle(batches)
        return iter(batches)


def collate(items):
    ids, labels = zip(*items)
    return pad_sequence(ids, batch_first=True), torch.tensor(labels)


class Classifier(L.LightningModule):
    def __init__(self, dim=128, heads=4, layers=3):
        super().__init__()
        self.emb = nn.Embedding(VOCAB + 2, dim, padding_idx=0)
        self.pos = nn.Parameter(torch.randn(1, 192, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.1, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(dim, SECTIONS)

    def forward(self, ids):
        pad = ids == 0
        h = self.enc(self.emb(ids) + self.pos[:, :ids.size(1)], src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1).float()
        return self.out((h * keep).sum(1) / keep.sum(1))

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        acc = (self(batch[0]).argmax(1) == batch[1]).float().mean()
        self.log("val_acc", acc, batch_size=len(batch[1]))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=5e-4)


class Clock(L.Callback):
    def __init__(self, seconds):
        self.seconds, self.n = seconds, 0

    def on_train_start(self, trainer, pl):
        self.t0 = time.monotonic()

    def on_train_batch_end(self, trainer, pl, out, batch, i):
        self.n += 1
        if self.n % 20 == 0:
            print(f"step {self.n} loss {out['loss'].item():.4f}")
        if time.monotonic() - self.t0 > self.seconds:
            trainer.should_stop = True

    def on_train_end(self, trainer, pl):
        print(f"{self.n / (time.monotonic() - self.t0):.2f} steps/s")


if __name__ == "__main__":
    L.seed_everything(41, verbose=False)
    train, val = Claims(4800, 41), Claims(64, 42)
    out = tempfile.mkdtemp()
    trainer = L.Trainer(
        accelerator="cpu", max_epochs=50, logger=CSVLogger(out), log_every_n_steps=50, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, gradient_clip_val=1.0,
        callbacks=[Clock(18.0), LearningRateMonitor("step"), ModelCheckpoint(out, monitor="val_acc", mode="max", save_last=True)],
    )
    trainer.fit(
        Classifier(),
        DataLoader(train, batch_sampler=BucketBatches([len(t) for t in train.ids], 24), collate_fn=collate),
        DataLoader(val, batch_size=32, collate_fn=collate),
    )
