# Character-ish language model on made-up chapters. bf16, one GPU.
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

EPOCHS, STEPS, BATCH, CONTEXT = 6, 60, 16, 1024
VOCABULARY, WIDTH, DEPTH, HEADS = 8192, 1024, 12, 16


class Chapters(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(0)
        self.text = torch.randint(VOCABULARY, (2_000_000,), generator=g)
        self.text[1::2] = self.text[::2]  # every second token can be told from the one before

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, i):
        start = 2 * (i * 7919 % 990_000)
        part = self.text[start : start + CONTEXT + 1]
        return part[:-1], part[1:]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.Sequential(*[Layer() for _ in range(DEPTH)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        return self.head(self.norm(self.layers(x)))


def main():
    if not torch.cuda.is_available():
        sys.exit("this training needs a CUDA device")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda")
    loader = DataLoader(
        Chapters(), batch_size=BATCH, shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True
    )
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    curve = []
    for epoch in range(EPOCHS):
        began = time.perf_counter()
        losses = []
        for tokens, following in loader:
            tokens = tokens.to(device, non_blocking=True)
            following = following.to(device, non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = model(tokens)
            loss = F.cross_entropy(logits.float().flatten(0, 1), following.flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        mean = torch.stack(losses).mean().item()  # the only look at the device in an epoch
        curve += torch.stack(losses).cpu().tolist()
        print(f"epoch {epoch}: perplexity {math.exp(mean):.0f}, {time.perf_counter() - began:.1f}s", flush=True)
    print(f"first loss {curve[0]:.2f}, last {curve[-1]:.2f}")


if __name__ == "__main__":
    main()
