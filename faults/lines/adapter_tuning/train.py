"""Adapter tuning of a frozen text encoder on a sentence classification task."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")
VOCAB, SEQ, DIM, DEPTH = 4000, 48, 256, 6


class Adapter(nn.Module):
    def __init__(self, dim, bottleneck=16):
        super().__init__()
        self.down = nn.Linear(dim, bottleneck)
        self.up = nn.Linear(bottleneck, dim)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        return x + self.up(F.gelu(self.down(x)))


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.adapter = Adapter(dim)

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return self.adapter(x + self.mlp(self.ln2(x)))


class Classifier(nn.Module):
    def __init__(self, n_classes=8):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(SEQ, DIM)
        self.soft_prompt = nn.Parameter(torch.zeros(1, 1, DIM))
        self.blocks = nn.ModuleList(Block(DIM) for _ in range(DEPTH))
        self.head = nn.Linear(DIM, n_classes)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight + self.soft_prompt
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x.mean(1))


def freeze_backbone(model):
    for name, p in model.named_parameters():
        p.requires_grad_("adapter" in name or "head" in name or "soft_prompt" in name)
    return [p for p in model.parameters() if p.requires_grad]


def corpus(n=8000, n_classes=8):
    g = torch.Generator().manual_seed(13)
    y = torch.randint(0, n_classes, (n,), generator=g)
    ids = torch.randint(0, VOCAB, (n, SEQ), generator=g)
    topical = torch.rand(n, SEQ, generator=g) < 0.15
    ids[topical] = (ids % 100 + 100 * y[:, None])[topical]
    return ids, y


def main(seconds=14):
    torch.manual_seed(0)
    ids, y = (t.to(device) for t in corpus())
    model = Classifier().to(device)
    opt = torch.optim.AdamW(freeze_backbone(model), lr=1e-3)
    batch = 256 if device == "cuda" else 8
    step, t0 = 0, time.time()
    while time.time() - t0 < seconds:
        rows = torch.randint(0, len(y), (batch,), device=device)
        loss = F.cross_entropy(model(ids[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * batch / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
