"""accelerate: causal transformer on synthetic token streams."""
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB = 512


def make_tokens(n, seq):
    g = torch.Generator().manual_seed(0)
    steps = torch.randint(-2, 3, (n, seq + 1), generator=g).cumsum(1)
    return TensorDataset((steps + torch.randint(0, VOCAB, (n, 1), generator=g)) % VOCAB)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, width, depth, seq):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, width), nn.Parameter(torch.zeros(1, seq, width))
        self.blocks = nn.Sequential(*[Block(width, width // 64) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCAB, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tok(ids) + self.pos)))


def main():
    torch.manual_seed(0)
    cuda = torch.cuda.is_available()
    accelerator = Accelerator(mixed_precision="bf16" if cuda else "no")
    width, depth, seq, batch = (768, 12, 512, 64) if cuda else (192, 3, 64, 16)
    model = GPT(width, depth, seq)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=cuda)
    loader = DataLoader(make_tokens(8000, seq), batch_size=batch, shuffle=True, drop_last=True,
                        num_workers=4 if cuda else 0, persistent_workers=cuda, pin_memory=cuda)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    step, start, running = 0, time.time(), True
    while running:
        for (ids,) in loader:
            logits = model(ids[:, :-1])
            loss = nn.functional.cross_entropy(logits.reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
            step += 1
            if step % 100 == 0:
                accelerator.print(f"step {step} loss {loss.item():.3f}")
            if time.time() - start > 14:
                running = False
                break
    if cuda:
        torch.cuda.synchronize()
    accelerator.print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
