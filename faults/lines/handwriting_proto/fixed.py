"""Prototypical networks for few-shot handwriting recognition."""
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

N_WAY, K_SHOT, N_QUERY = 10, 5, 5
N_CLASSES, PER_CLASS = 60, 60
SECONDS = 18.0


def strokes(n_classes, per_class, size=28):
    """Every class is a smooth random template; samples are noisy shifts of it."""
    coarse = torch.randn(n_classes, 1, 7, 7)
    templates = nn.functional.interpolate(coarse, size=(size, size), mode="bicubic", align_corners=False)
    images = templates.repeat_interleave(per_class, 0)
    shift = torch.randint(-2, 3, (len(images), 2))
    images = torch.stack([im.roll(tuple(s), (1, 2)) for im, s in zip(images, shift.tolist())])
    labels = torch.arange(n_classes).repeat_interleave(per_class)
    order = torch.randperm(len(labels))
    return (images + 0.5 * torch.randn_like(images))[order], labels[order]


class EpisodeSampler(Sampler):
    def __init__(self, labels, n_way, n_per_class, episodes):
        self.labels = labels
        self.n_way, self.n_per_class, self.episodes = n_way, n_per_class, episodes
        self.classes = sorted(set(labels.tolist()))
        self.by_class = {c: (labels == c).nonzero().flatten().tolist() for c in self.classes}

    def __len__(self):
        return self.episodes

    def __iter__(self):
        for _ in range(self.episodes):
            episode = []
            for c in random.sample(self.classes, self.n_way):
                episode += random.sample(self.by_class[c], self.n_per_class)
            yield episode


def conv_block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True), nn.MaxPool2d(2))


class Embedder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(conv_block(1, width), conv_block(width, width), conv_block(width, width), nn.Flatten())

    def forward(self, x):
        return self.net(x)


def episode_loss(model, images):
    z = model(images).view(N_WAY, K_SHOT + N_QUERY, -1)
    protos = z[:, :K_SHOT].mean(1)
    queries = z[:, K_SHOT:].reshape(N_WAY * N_QUERY, -1)
    logits = -torch.cdist(queries, protos) ** 2 / 10
    target = torch.arange(N_WAY).repeat_interleave(N_QUERY)
    acc = (logits.argmax(1) == target).float().mean()
    return nn.functional.cross_entropy(logits, target), acc


def main():
    random.seed(0)
    torch.manual_seed(0)
    images, labels = strokes(N_CLASSES, PER_CLASS)
    sampler = EpisodeSampler(labels, N_WAY, K_SHOT + N_QUERY, episodes=100000)
    loader = DataLoader(TensorDataset(images, labels), batch_sampler=sampler)
    model = Embedder()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, 500, 0.5)
    t0 = time.monotonic()
    for n, (x, _) in enumerate(loader, 1):
        loss, acc = episode_loss(model, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if n % 10 == 0:
            print(f"episode {n:4d} loss {loss.item():.3f} acc {acc.item():.2f}")
        if time.monotonic() - t0 > SECONDS:
            break
    print(f"{n / (time.monotonic() - t0):.2f} episodes/s")


main()
