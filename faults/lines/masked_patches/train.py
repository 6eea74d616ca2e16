"""Masked-patch transformer on spectrogram patches with gradient accumulation."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")
PATCHES, PATCH_DIM = 48, 64
MICRO_BATCH = 512 if device == "cuda" else 24
ACCUMULATE = 4


class MaskedEncoder(nn.Module):
    def __init__(self, dim=128, heads=4, depth=2):
        super().__init__()
        self.inp = nn.Linear(PATCH_DIM, dim)
        self.mask_token = nn.Parameter(torch.zeros(dim))
        self.pos = nn.Parameter(0.02 * torch.randn(PATCHES, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(dim, PATCH_DIM)

    def forward(self, patches, masked):
        h = torch.where(masked[..., None], self.mask_token, self.inp(patches))
        return self.out(self.encoder(h + self.pos))


def spectrograms(n=4000):
    g = torch.Generator().manual_seed(33)
    basis = torch.randn(10, PATCHES, PATCH_DIM, generator=g)
    weights = torch.rand(n, 10, generator=g)
    return torch.einsum("nk,kpd->npd", weights, basis) + 0.2 * torch.randn(n, PATCHES, PATCH_DIM, generator=g)


def micro_step(model, patches):
    masked = torch.rand(patches.shape[:2], device=device) < 0.4
    error = (model(patches, masked) - patches).pow(2).mean(-1)
    loss = (error * masked).sum() / masked.sum()
    (loss / ACCUMULATE).backward()
    return loss.detach()


def main(seconds=14):
    torch.manual_seed(0)
    data = spectrograms().to(device)
    model = MaskedEncoder().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    warmup = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.1, total_iters=50)
    step, t0 = 0, time.time()
    while time.time() - t0 < seconds:
        opt.zero_grad()
        for _ in range(ACCUMULATE):
            rows = torch.randint(0, len(data), (MICRO_BATCH,), device=device)
            loss = micro_step(model, data[rows])
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        warmup.step()
        step += 1
        if step % 10 == 0:
            print(f"step {step} masked mse {loss.item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * MICRO_BATCH * ACCUMULATE / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
