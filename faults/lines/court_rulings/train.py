"""Classify court rulings by field of law."""
import os
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CUDA = DEVICE == "cuda"
MAX_TOKENS, BATCH, DIM, LAYERS = (1024, 64, 512, 6) if CUDA else (128, 8, 32, 2)


def rulings(n=8192 if CUDA else 256):
    g = torch.Generator().manual_seed(0)
    lengths = (torch.randn(n, generator=g) * 0.6 + 4.9).exp().long().clamp(20, MAX_TOKENS)
    if not CUDA:
        lengths = (lengths // 8).clamp(4, MAX_TOKENS)
    ids = torch.randint(1, 8000, (n, MAX_TOKENS), generator=g)
    ids[torch.arange(MAX_TOKENS) >= lengths[:, None]] = 0
    return ids.to(DEVICE), lengths, torch.randint(0, 14, (n,), generator=g).to(DEVICE)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(8000, DIM, padding_idx=0)
        self.positions = nn.Embedding(MAX_TOKENS, DIM)
        layer = nn.TransformerEncoderLayer(DIM, 8, 4 * DIM, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, 14)

    def forward(self, ids):
        padding = ids == 0
        h = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        h = self.layers(h, src_key_padding_mask=padding)
        keep = (~padding).unsqueeze(-1)
        return self.head((h * keep).sum(1) / keep.sum(1))


def epoch(ids, lengths, fields):
    for rows in torch.randperm(len(ids), device=DEVICE).split(BATCH):
        yield ids[rows], fields[rows]


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    data = rulings()
    model = Encoder().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=CUDA)
    steps, start, running = 0, None, True
    while running:
        for ids, fields in epoch(*data):
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(ids), fields)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps == 5:
                start = time.time()
            if start and time.time() - start > limit:
                running = False
                break
    print(f"{(steps - 5) / (time.time() - start):.2f} steps/s, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
