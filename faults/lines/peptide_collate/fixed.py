"""Peptide retention-time regression: variable length sequences, masked attention."""
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

ALPHABET, PROPS = 22, 6


def peptides(n=5000, seed=13):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        length = int(rng.integers(20, 60))
        ids = torch.from_numpy(rng.integers(1, ALPHABET, length))
        prop = torch.from_numpy(rng.standard_normal((length, PROPS), dtype=np.float32))
        out.append((ids, prop, float(ids.float().mean())))
    return out


def pad_batch(batch):
    tokens = pad_sequence([ids for ids, _, _ in batch], batch_first=True)
    props = pad_sequence([prop for _, prop, _ in batch], batch_first=True)
    lengths = torch.tensor([len(ids) for ids, _, _ in batch])
    mask = torch.arange(tokens.shape[1])[None, :] >= lengths[:, None]
    target = torch.tensor([t for _, _, t in batch])
    return tokens, props, mask, target


class RetentionModel(nn.Module):
    def __init__(self, dim=64, layers=2):
        super().__init__()
        self.embed = nn.Embedding(ALPHABET, dim, padding_idx=0)
        self.props = nn.Linear(PROPS, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 128, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 1)

    def forward(self, tokens, props, mask):
        h = self.embed(tokens) + self.props(props)
        h = self.encoder(h, src_key_padding_mask=mask)
        keep = (~mask).unsqueeze(-1).float()
        return self.out((h * keep).sum(1) / keep.sum(1)).squeeze(-1)


def fit(model, loader, device, seconds):
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    steps = samples = 0
    t0 = time.perf_counter()
    while True:
        for batch in loader:
            tokens, props, mask, target = (t.to(device) for t in batch)
            loss = nn.functional.l1_loss(model(tokens, props, mask), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
            samples += len(target)
            if steps % 50 == 0:
                print(f"step {steps:5d}  mae {loss.item():.3f}")
            if time.perf_counter() - t0 > seconds:
                dt = time.perf_counter() - t0
                return steps / dt, samples / dt


def main():
    torch.manual_seed(13)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(peptides(), batch_size=32, shuffle=True, drop_last=True, collate_fn=pad_batch)
    model = RetentionModel().to(device)
    print("parameters:", sum(p.numel() for p in model.parameters()))
    sps, smp = fit(model, loader, device, seconds=14.0)
    print(f"{sps:.2f} steps/s, {smp:.1f} samples/s")


if __name__ == "__main__":
    main()
