import time
import torch
import torch.nn as nn
import torch.nn.functional as F


class LocalAttention(nn.Module):
    def __init__(self, dim, heads, seq_len, window):
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        gap = torch.arange(seq_len)[:, None] - torch.arange(seq_len)[None, :]
        self.register_buffer("mask", (gap >= 0) & (gap < window), persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:t, :t])
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, seq_len, window):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = LocalAttention(dim, heads, seq_len, window)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.ff(self.n2(x))


class CharLM(nn.Module):
    def __init__(self, vocab=64, dim=64, heads=4, depth=3, seq_len=192, window=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(seq_len, dim))
        self.layers = nn.ModuleList(Layer(dim, heads, seq_len, window) for _ in range(depth))
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.tok(ids) + self.pos[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


class LMTrainer:
    def __init__(self, seq_len=192, vocab=64):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.seq_len = seq_len
        self.batch = 128 if self.device == "cuda" else 4
        self.stream = self.synthesize(400_000, vocab).to(self.device)
        self.offsets = torch.arange(seq_len + 1, device=self.device)
        self.model = CharLM(vocab=vocab, seq_len=seq_len).to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    @staticmethod
    def synthesize(n, vocab):
        g = torch.Generator().manual_seed(0)
        noise = torch.randint(0, 3, (n,), generator=g)
        return (torch.cumsum(noise, 0) * 7) % vocab

    def get_batch(self):
        start = torch.randint(0, len(self.stream) - self.seq_len - 1, (self.batch, 1), device=self.device)
        chunk = self.stream[start + self.offsets]
        return chunk[:, :-1], chunk[:, 1:]

    def run(self, seconds=14):
        step, t0 = 0, time.time()
        while time.time() - t0 < seconds:
            x, y = self.get_batch()
            logits = self.model(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            step += 1
            if step % 25 == 0:
                print(f"step {step} nll {loss.item():.3f}")
        if self.device == "cuda":
            torch.cuda.synchronize()
        dt = time.time() - t0
        print(f"{step / dt:.2f} steps/s, {step * self.batch / dt:.1f} samples/s")


if __name__ == "__main__":
    torch.manual_seed(0)
    LMTrainer().run()
