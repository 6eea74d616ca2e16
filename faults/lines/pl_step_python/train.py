"""Lightning: per-frame character classifier (OCR line reader)."""
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CUDA = torch.cuda.is_available()
CHARS, FEATS, LABEL_LEN = 30, 32, 40


def make_lines(n=2000):
    g = torch.Generator().manual_seed(0)
    targets = torch.randint(1, CHARS, (n, LABEL_LEN), generator=g)
    proto = torch.randn(CHARS, FEATS, generator=g)
    frames = proto[targets]
    return TensorDataset(frames + 1.5 * torch.randn(frames.shape, generator=g), targets)


def edit_distance(a, b):
    prev = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        cur = [i]
        for j, y in enumerate(b, 1):
            cur.append(min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + (x != y)))
        prev = cur
    return prev[-1]


class LineReader(L.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(FEATS, width, 5, padding=2), nn.GELU(),
            nn.Conv1d(width, width, 5, padding=2), nn.GELU(),
            nn.Conv1d(width, CHARS, 1))

    def forward(self, x):
        return self.net(x.transpose(1, 2)).transpose(1, 2)

    def training_step(self, batch, batch_idx):
        frames, targets = batch
        logits = self(frames)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        paths = logits.argmax(-1).tolist()
        cer = sum(edit_distance(p, t) for p, t in zip(paths, targets.tolist()))
        self.log("train_cer", cer / (len(paths) * LABEL_LEN))
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


def main():
    L.seed_everything(0)
    batch = 64
    loader = DataLoader(make_lines(), batch_size=batch, shuffle=True, drop_last=True,
                        num_workers=2 if CUDA else 0, persistent_workers=CUDA, pin_memory=CUDA)
    model = LineReader(512 if CUDA else 64)
    trainer = L.Trainer(max_epochs=-1, max_time={"seconds": 14}, accelerator="auto", devices=1, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    start = time.time()
    trainer.fit(model, loader)
    print(f"{trainer.global_step} steps, {trainer.global_step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
