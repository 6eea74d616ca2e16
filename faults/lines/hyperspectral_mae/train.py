"""Masked autoencoder on hyperspectral cubes with a slowly moving teacher for the targets."""
import copy
import time

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(404)
device = "cuda" if torch.cuda.is_available() else "cpu"
gpu = device == "cuda"
torch.set_float32_matmul_precision("high")

BANDS, SIDE, PATCH = (64, 128, 8) if gpu else (8, 16, 4)
DIM, DEPTH, HEADS = (1536, 8, 12) if gpu else (32, 2, 2)
BATCH, CUBES = (128, 1024) if gpu else (4, 32)
TOKENS = (SIDE // PATCH) ** 2
KEEP = TOKENS // 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(self.a(x)).view(n, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, DIM))
        return x + self.down(F.gelu(self.up(self.b(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(BANDS * PATCH * PATCH, DIM)
        self.pos = nn.Parameter(torch.randn(1, TOKENS, DIM) * 0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, patches, keep=None):
        x = self.embed(patches) + self.pos
        if keep is not None:
            x = x.gather(1, keep.unsqueeze(-1).expand(-1, -1, DIM))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


def patchify(cubes):
    n, c, h, w = cubes.shape
    x = cubes.view(n, c, h // PATCH, PATCH, w // PATCH, PATCH)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(n, TOKENS, -1)


def random_keep(n):
    return torch.rand(n, TOKENS, device=device).argsort(1)[:, :KEEP]


def main():
    cubes = torch.randn(CUBES, BANDS, SIDE, SIDE, device=device).to(torch.bfloat16)
    patches = torch.cat([patchify(part) for part in cubes.split(64)])
    del cubes
    student = Encoder().to(device)
    predictor = nn.Sequential(nn.Linear(DIM, DIM), nn.GELU(), nn.Linear(DIM, DIM)).to(device)
    teacher = copy.deepcopy(student).requires_grad_(False)
    weights = list(student.parameters()) + list(predictor.parameters())
    opt = torch.optim.AdamW(weights, lr=1e-4, weight_decay=0.05, fused=True)
    pairs = list(teacher.parameters()), list(student.parameters())

    begin, step = time.monotonic(), 0
    while time.monotonic() - begin < 18:
        batch = patches[torch.randint(0, CUBES, (BATCH,), device=device)]
        keep = random_keep(BATCH)
        with torch.autocast(device, dtype=torch.bfloat16):
            with torch.no_grad():
                target = teacher(batch).gather(1, keep.unsqueeze(-1).expand(-1, -1, DIM))
            loss = F.smooth_l1_loss(predictor(student(batch, keep)), target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(*pairs, 0.004)
        step += 1
        if step % 50 == 0:
            print(f"step {step:5d}  loss {loss.item():.4f}")
    secs = time.monotonic() - begin
    print(f"{step} steps, {step * BATCH / secs:.0f} cubes/s, {1000 * secs / step:.1f} ms/step")


if __name__ == "__main__":
    main()
