import argparse
import time

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from data import DefectImages, make_station_dump
from net import defect_net

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type = int, default = 5, help = 'passes over the images')
parser.add_argument('--images', type = int, default = 1280)
parser.add_argument('--batch_size', type = int, default = 64)
parser.add_argument('--num_workers', type = int, default = 0, help = 'processes that prepare images')
opt = parser.parse_args()


def build_loader():
    blobs, labels = make_station_dump(opt.images, seed=3)
    return DataLoader(
        DefectImages(blobs, labels),
        batch_size=opt.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=opt.num_workers,
        persistent_workers=opt.num_workers > 0,
    )


def train_epoch(model, loader, optimizer):
    model.train()
    total = torch.zeros(())
    for images, labels in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total / len(loader)


def main():
    torch.manual_seed(3)
    loader = build_loader()
    model = defect_net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    for epoch in range(opt.epochs):
        began = time.perf_counter()
        loss = train_epoch(model, loader, optimizer)
        print('epoch %d loss %.3f (%.1fs)' % (epoch, loss, time.perf_counter() - began), flush=True)


if __name__ == '__main__':
    main()
