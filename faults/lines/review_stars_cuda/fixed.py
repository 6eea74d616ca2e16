"""Star rating from product reviews: transformer encoder over word pieces."""
import argparse
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
ap = argparse.ArgumentParser()
ap.add_argument("--max-len", type=int, default=512)
ap.add_argument("--batch-size", type=int, default=64)
ap.add_argument("--limit", type=float, default=18.0)
opts = ap.parse_args()

random.seed(21)
torch.manual_seed(21)
device = "cuda" if torch.cuda.is_available() else "cpu"
gpu = device == "cuda"
if not gpu:
    opts.max_len, opts.batch_size = 64, 8
torch.set_float32_matmul_precision("high")
VOCAB, DIM, HEADS, DEPTH = (20000, 768, 12, 12) if gpu else (500, 32, 2, 2)


def synth_reviews(n):
    out = []
    for _ in range(n):
        stars = random.randrange(5)
        length = min(opts.max_len, max(6, int(random.lognormvariate(4.2, 0.6) * opts.max_len / 512)))
        ids = torch.randint(10, VOCAB, (length,))
        ids[::5] = stars + 1
        out.append((ids, stars))
    return out


def collate(rows):
    ids = torch.zeros(len(rows), max(len(seq) for seq, _ in rows), dtype=torch.long)
    for r, (seq, _) in enumerate(rows):
        ids[r, : len(seq)] = seq
    stars = torch.tensor([s for _, s in rows])
    if gpu:
        ids, stars = ids.pin_memory(), stars.pin_memory()
    return ids.to(device, non_blocking=True), stars.to(device, non_blocking=True)


class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, mask):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, DIM))
        return x + self.ff(self.n2(x))


class StarModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, DIM, padding_idx=0), nn.Embedding(opts.max_len, DIM)
        self.blocks = nn.ModuleList(EncoderBlock() for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, 5)

    def forward(self, ids):
        keep = ids > 0
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        for blk in self.blocks:
            x = blk(x, keep[:, None, None, :])
        w = keep.unsqueeze(-1).to(x.dtype)
        return self.head(self.norm((x * w).sum(1) / w.sum(1)))


def epoch_batches(reviews):
    by_length = sorted(reviews, key=lambda r: (len(r[0]), random.random()))
    starts = list(range(0, len(reviews) - opts.batch_size + 1, opts.batch_size))
    random.shuffle(starts)
    for s in starts:
        yield collate(by_length[s : s + opts.batch_size])


reviews = synth_reviews(12000 if gpu else 300)
model = StarModel().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
t0, steps = time.monotonic(), 0
while time.monotonic() - t0 < opts.limit:
    for ids, stars in epoch_batches(reviews):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(ids), stars)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 100 == 0:
            print(f"step {steps} loss {loss.item():.3f}")
        if time.monotonic() - t0 > opts.limit:
            break
print(f"{steps} steps, {steps * opts.batch_size / (time.monotonic() - t0):.0f} reviews/s")
