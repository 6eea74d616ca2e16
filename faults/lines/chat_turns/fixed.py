"""Dialogue-act tagger whose turns get longer as training goes on."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
BATCH, DIM, LAYERS = (128, 512, 3) if CUDA else (4, 32, 1)
STAGE = 60 if CUDA else 8
torch._dynamo.config.recompile_limit = 200


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12_000, DIM)
        self.convs = nn.ModuleList(nn.Conv1d(DIM, DIM, 5, padding=2) for _ in range(LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(LAYERS))
        self.head = nn.Linear(DIM, 42)

    def forward(self, ids):
        h = self.embed(ids)
        for conv, norm in zip(self.convs, self.norms):
            h = h + F.gelu(conv(norm(h).transpose(1, 2)).transpose(1, 2))
        return self.head(h)


def length_at(step):
    return 64 + 6 * (step // STAGE)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    turns = torch.randint(0, 12_000, (4096, 1024), device=DEVICE)
    acts = turns % 42
    model = Tagger().to(DEVICE)
    compiled = torch.compile(model, dynamic=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=CUDA)
    step, start = 0, None
    while start is None or time.time() - start < seconds:
        length = length_at(step)
        rows = torch.randint(0, len(turns), (BATCH,), device=DEVICE)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            logits = compiled(turns[rows, :length])
            loss = F.cross_entropy(logits.flatten(0, 1), acts[rows, :length].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step == 3:
            start = time.time()
    print(f"{(step - 3) / (time.time() - start):.2f} steps/s, length {length}, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
