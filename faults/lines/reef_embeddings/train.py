"""Contrastive embeddings of reef sounds, with keys of earlier batches as negatives."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn


class KeyBank:
    def __init__(self, dim):
        self.keys = torch.empty(0, dim)

    def add(self, keys):
        self.keys = torch.cat([self.keys, keys.detach()])


class Encoder(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(200, 640), nn.ReLU(), nn.Linear(640, 640), nn.ReLU(), nn.Linear(640, dim))

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


def info_nce(queries, keys, bank, temperature=0.1):
    positive = (queries * keys).sum(1, keepdim=True)
    negative = queries @ bank.keys.T
    logits = torch.cat([positive, negative], 1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(queries), dtype=torch.long))


def main():
    torch.manual_seed(8)
    seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    sounds = torch.randn(30_000, 200)
    encoder = Encoder()
    bank = KeyBank(128)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-4)
    steps, start = 0, None
    while True:
        batch = sounds[torch.randint(0, len(sounds), (256,))]
        queries = encoder(batch + 0.1 * torch.randn_like(batch))
        with torch.no_grad():
            keys = encoder(batch + 0.1 * torch.randn_like(batch))
        loss = info_nce(queries, keys, bank)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bank.add(keys)
        steps += 1
        if steps == 5:
            start = time.time()
        if start and time.time() - start > seconds:
            break
    print(f"{(steps - 5) / (time.time() - start):.2f} steps/s, {loss.item():.3f}")


if __name__ == "__main__":
    main()
