"""MLP-mixer on toy patches with activation statistics from forward hooks."""
import time

import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"
TOKENS, DIM, CLASSES = 16, 48, 10


def make_data(n=6000):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    proto = torch.randn(CLASSES, TOKENS, DIM, generator=g)
    x = proto[y] + 2.0 * torch.randn(n, TOKENS, DIM, generator=g)
    return x.to(DEV), y.to(DEV)


class Mixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Sequential(nn.Linear(TOKENS, 4 * TOKENS), nn.GELU(), nn.Linear(4 * TOKENS, TOKENS))
        self.ch = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ch(self.n2(x))


class Net(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.inp = nn.Linear(DIM, dim)
        self.blocks = nn.ModuleList(Mixer(dim) for _ in range(depth))
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = b(x)
        return self.head(x.mean(1))


def watch_activations(model, store):
    def hook_for(name):
        def hook(module, args, output):
            store[name] = output.detach().float().std()
        return hook

    for i, block in enumerate(model.blocks):
        block.register_forward_hook(hook_for(f"block{i}"))


def main():
    torch.manual_seed(0)
    x_all, y_all = make_data()
    dim, depth, batch = (768, 8, 256) if DEV == "cuda" else (96, 4, 32)
    model = Net(dim, depth).to(DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    stats = {}
    step, start = 0, time.time()
    while time.time() - start < 14:
        watch_activations(model, stats)
        pick = torch.randint(0, len(x_all), (batch,), device=DEV)
        loss = nn.functional.cross_entropy(model(x_all[pick]), y_all[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 50 == 0:
            act = " ".join(f"{k}={v.item():.2f}" for k, v in sorted(stats.items()))
            print(f"step {step} loss {loss.item():.3f} {act}")
    if DEV == "cuda":
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
