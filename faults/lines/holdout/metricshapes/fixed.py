"""Metric learning with batch-hard triplets on synthetic shape images."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    seed: int = 5
    n_classes: int = 32
    per_class: int = 60
    image_size: int = 24
    classes_per_batch: int = 32
    images_per_class: int = 16
    embedding: int = 128
    margin: float = 0.3
    steps: int = 60
    lr: float = 1e-3


def make_shapes(cfg):
    """Every class is a smooth random template; instances are shifted, noisy copies."""
    coarse = torch.randn(cfg.n_classes, 1, 6, 6)
    templates = F.interpolate(coarse, size=cfg.image_size, mode="bicubic", align_corners=False)
    labels = torch.arange(cfg.n_classes).repeat_interleave(cfg.per_class)
    images = templates[labels]
    shift = torch.randint(-3, 4, (2,))
    images = torch.roll(images, shifts=tuple(shift.tolist()), dims=(2, 3))
    images = images + 1.6 * torch.randn_like(images)
    return images, labels


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(64 * 4, dim)

    def forward(self, x):
        return F.normalize(self.head(self.features(x).flatten(1)), dim=1)


class BatchHardTripletLoss(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def distances(self, z):
        squared = (2.0 - 2.0 * (z @ z.T)).clamp_min(0.0)
        return (squared + 1e-9).sqrt()

    def forward(self, z, labels):
        dist = self.distances(z)
        same = labels.unsqueeze(0) == labels.unsqueeze(1)
        hardest_positive = dist.masked_fill(~same, 0.0).amax(dim=1)
        hardest_negative = dist.masked_fill(same, float("inf")).amin(dim=1)
        return F.relu(hardest_positive - hardest_negative + self.margin).mean()


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.images, self.labels = make_shapes(cfg)
        self.encoder = Encoder(cfg.embedding)
        self.criterion = BatchHardTripletLoss(cfg.margin)
        self.optimizer = torch.optim.Adam(self.encoder.parameters(), lr=cfg.lr)

    def sample_batch(self):
        classes = torch.randperm(self.cfg.n_classes)[: self.cfg.classes_per_batch]
        picks = torch.rand(len(classes), self.cfg.per_class).argsort(dim=1)[:, : self.cfg.images_per_class]
        index = (classes.unsqueeze(1) * self.cfg.per_class + picks).flatten()
        return self.images[index], self.labels[index]

    def train_step(self):
        images, labels = self.sample_batch()
        loss = self.criterion(self.encoder(images), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def recall_at_1(self, n=400):
        index = torch.randperm(len(self.images))[:n]
        z = self.encoder(self.images[index])
        similarity = (z @ z.T).fill_diagonal_(-1)
        nearest = similarity.argmax(dim=1)
        return (self.labels[index][nearest] == self.labels[index]).float().mean().item()

    def fit(self):
        for step in range(1, self.cfg.steps + 1):
            loss = self.train_step()
            if step % 15 == 0:
                print(f"step {step:3d}  loss {loss.item():.4f}")
        print(f"recall@1 {self.recall_at_1():.3f}")


if __name__ == "__main__":
    Trainer(Config()).fit()
