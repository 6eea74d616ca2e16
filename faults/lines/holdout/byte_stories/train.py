"""Byte-level story model; documents are generated, shuffled and packed by loader workers."""
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SEED = 6
device = "cuda" if torch.cuda.is_available() else "cpu"
on_gpu = device == "cuda"
CTX, BATCH, DIM, HEADS, DEPTH = (1024, 32, 1536, 12, 10) if on_gpu else (32, 4, 32, 2, 2)

WORDS = "the a old young fox girl king river forest ran sang slept found lost gold bread under over and then never".split()


class Packed(IterableDataset):
    """Endless packed rows of CTX + 1 bytes, separated by zero bytes."""

    def __iter__(self):
        info = get_worker_info()
        rng = random.Random(SEED + (info.id if info else 0))
        buffer = bytearray()
        need = BATCH * (CTX + 1)
        while True:
            while len(buffer) < need:
                sentence = [" ".join(rng.choices(WORDS, k=rng.randint(5, 14))) for _ in range(rng.randint(3, 30))]
                buffer += ". ".join(sentence).encode() + b"\0"
            rows = np.frombuffer(bytes(buffer[:need]), dtype=np.uint8).reshape(BATCH, CTX + 1)
            del buffer[:need]
            yield torch.from_numpy(rows.copy())


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.o = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.fc1, self.fc2 = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x)), approximate="tanh"))


class StoryModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.pos = nn.Embedding(256, DIM), nn.Embedding(CTX, DIM)
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.ln, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, 256)

    def forward(self, ids):
        return self.head(self.ln(self.blocks(self.emb(ids) + self.pos.weight)))


def main():
    torch.manual_seed(SEED)
    torch.set_float32_matmul_precision("high")
    workers = 6 if on_gpu else 1
    loader = DataLoader(Packed(), batch_size=None, num_workers=workers, pin_memory=on_gpu, prefetch_factor=4)
    model = StoryModel().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f}M parameters, {workers} workers")

    feed = iter(loader)
    first = next(feed)
    print("sample:", bytes(first[0, :60].tolist()).decode())
    t0, step = time.monotonic(), 0
    for rows in feed:
        ids = rows.to(device, non_blocking=True).long()
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        step += 1
        if step % 25 == 0:
            print(f"step {step} bits/byte {loss.item() / 0.6931:.3f}")
        if time.monotonic() - t0 > 18:
            break
    print(f"{step} steps, {step * BATCH * CTX / (time.monotonic() - t0):,.0f} bytes/s")


if __name__ == "__main__":
    main()
