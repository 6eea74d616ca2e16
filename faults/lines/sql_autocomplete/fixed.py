"""Decoder for SQL completion, trained with Lion."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(99)
device = "cuda" if torch.cuda.is_available() else "cpu"
small = device == "cpu"
torch.set_float32_matmul_precision("high")

V, T, D, L, H, B = (8192, 512, 512, 32, 8, 16) if not small else (64, 32, 32, 3, 2, 4)


class Lion(torch.optim.Optimizer):
    """Sign momentum, https://arxiv.org/abs/2302.06675"""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, wd, (b1, b2) = group["lr"], group["weight_decay"], group["betas"]
            ps = [p for p in group["params"] if p.grad is not None]
            for p in ps:
                if "m" not in self.state[p]:
                    self.state[p]["m"] = torch.zeros_like(p)
            gs, ms = [p.grad for p in ps], [self.state[p]["m"] for p in ps]
            update = torch._foreach_lerp(ms, gs, 1 - b1)
            torch._foreach_sign_(update)
            torch._foreach_mul_(ps, 1 - lr * wd)
            torch._foreach_add_(ps, update, alpha=-lr)
            torch._foreach_lerp_(ms, gs, 1 - b2)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        b, t, _ = x.shape
        h = self.ln1(x)
        q, k, v = (f(h).view(b, t, H, D // H).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, D))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.pos = nn.Embedding(V, D), nn.Embedding(T, D)
        self.layers = nn.ModuleList(Layer() for _ in range(L))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        for p in self.parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.emb(ids) + self.pos.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


corpus = (torch.arange(400_000 if not small else 5000, device=device) * 7919 % 100_003) % V
window = torch.arange(T + 1, device=device)
model = Decoder().to(device)
matrices = [p for p in model.parameters() if p.ndim >= 2]
vectors = [p for p in model.parameters() if p.ndim < 2]
opt = Lion([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}], lr=1e-4)
print(f"{len(matrices) + len(vectors)} tensors, {sum(p.numel() for p in model.parameters()) / 1e6:.0f}M weights")

t0, n = time.monotonic(), 0
while time.monotonic() - t0 < 18:
    ids = corpus[torch.randint(0, len(corpus) - T - 1, (B, 1), device=device) + window]
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    n += 1
    if n % 100 == 0:
        print(f"{n:5d} {loss.item():.3f}")
print(f"{n} steps at {n / (time.monotonic() - t0):.2f}/s")
