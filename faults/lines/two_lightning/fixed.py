"""Lightning: classify event-camera clips (events binned to a grid)."""
import time

import lightning as L
import numpy as np
import torch
from sklearn.metrics import classification_report
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
SIDE, CLASSES, EVENTS = 24, 6, 200


class EventDataset(Dataset):
    def __init__(self, n=2000):
        rng = np.random.default_rng(0)
        self.labels = rng.integers(0, CLASSES, n)
        angle = rng.uniform(0, 6.28, (n, EVENTS))
        radius = 4 + 6 * np.abs(np.cos((self.labels[:, None] + 1) * angle))
        self.x = np.clip(SIDE / 2 + radius * np.cos(angle), 0, SIDE - 1).astype(int)
        self.y = np.clip(SIDE / 2 + radius * np.sin(angle), 0, SIDE - 1).astype(int)
        self.p = rng.integers(0, 2, (n, EVENTS))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        frame = np.zeros((2, SIDE, SIDE), dtype=np.float32)
        np.add.at(frame, (self.p[i], self.y[i], self.x[i]), 1.0)
        return torch.from_numpy(frame), int(self.labels[i])


class EventNet(L.LightningModule):
    def __init__(self, w):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(2, w, 3, 2, 1), nn.BatchNorm2d(w), nn.ReLU(),
            nn.Conv2d(w, 2 * w, 3, 2, 1), nn.BatchNorm2d(2 * w), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * w, CLASSES))

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        loss = nn.functional.cross_entropy(logits, y)
        if batch_idx % 25 == 0:
            guess, truth = logits.argmax(1).cpu().numpy(), y.cpu().numpy()
            report = classification_report(truth, guess, labels=range(CLASSES), output_dict=True, zero_division=0)
            self.log("macro_f1", report["macro avg"]["f1-score"])
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(0)
    loader = DataLoader(EventDataset(), batch_size=64, shuffle=True, drop_last=True,
                        pin_memory=CUDA)
    trainer = L.Trainer(max_epochs=-1, max_time={"seconds": 14}, accelerator="auto", devices=1, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    start = time.time()
    trainer.fit(EventNet(256 if CUDA else 16), loader)
    print(f"{trainer.global_step} steps, {trainer.global_step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
