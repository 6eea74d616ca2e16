"""Diffusion model of radar rain fields (4 elevation scans), patch transformer denoiser."""
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(55)
device = "cuda" if torch.cuda.is_available() else "cpu"
gpu = device == "cuda"
torch.set_float32_matmul_precision("high")

SCANS, SIDE, PATCH = (4, 128, 8) if gpu else (4, 16, 4)
DIM, DEPTH, HEADS = (768, 8, 12) if gpu else (32, 2, 2)
BATCH, FIELDS = (192, 2048) if gpu else (8, 64)
LEVELS = 1000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = nn.LayerNorm(DIM, elementwise_affine=False)
        self.n2 = nn.LayerNorm(DIM, elementwise_affine=False)
        self.qkv, self.o = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(approximate="tanh"), nn.Linear(4 * DIM, DIM))

    def forward(self, x, cond):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x) + cond).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, DIM)
        x = x + self.o(a)
        return x + self.mlp(self.n2(x))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Conv2d(SCANS, DIM, PATCH, PATCH)
        self.pos = nn.Parameter(torch.zeros(1, (SIDE // PATCH) ** 2, DIM))
        self.time = nn.Embedding(LEVELS, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.out = nn.Linear(DIM, SCANS * PATCH**2)

    def forward(self, x, t):
        h = self.inp(x).flatten(2).transpose(1, 2) + self.pos
        cond = self.time(t).unsqueeze(1)
        for blk in self.blocks:
            h = blk(h, cond)
        h = self.out(h).transpose(1, 2)
        return F.fold(h.float(), (SIDE, SIDE), PATCH, stride=PATCH)


class Averaged:
    def __init__(self, model, decay=0.999):
        self.model, self.decay = model, decay
        self.shadow = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self):
        for name, value in self.model.state_dict().items():
            self.shadow[name].lerp_(value.detach().cpu(), 1 - self.decay)

    def export(self):
        twin = copy.deepcopy(self.model)
        twin.load_state_dict(self.shadow)
        return twin


def main():
    rain = F.avg_pool2d(torch.rand(FIELDS, SCANS, SIDE, SIDE, device=device), 5, 1, 2).mul_(4).sub_(2)
    alpha_bar = torch.cumprod(1 - torch.linspace(1e-4, 0.02, LEVELS, device=device), 0)
    net = Denoiser().to(device)
    averaged = Averaged(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)

    start, step = time.monotonic(), 0
    while time.monotonic() - start < 18:
        x = rain[torch.randint(0, FIELDS, (BATCH,), device=device)]
        t = torch.randint(0, LEVELS, (BATCH,), device=device)
        noise = torch.randn(x.shape).to(device)
        a = alpha_bar[t].view(-1, 1, 1, 1)
        noisy = a.sqrt() * x + (1 - a).sqrt() * noise
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = net(noisy, t)
        loss = F.mse_loss(guess, noise)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        averaged.update()
        step += 1
        if step % 50 == 0:
            print(f"step {step} mse {loss.item():.4f}")
    print(f"{step} steps, {step / (time.monotonic() - start):.2f} steps/s, mse {loss.item():.4f}")
    averaged.export()


if __name__ == "__main__":
    main()
