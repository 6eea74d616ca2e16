"""Sparse autoencoder on language-model activations (dictionary learning)."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
BIG = device == "cuda"

p = argparse.ArgumentParser()
p.add_argument("--d-model", type=int, default=2048 if BIG else 32)
p.add_argument("--features", type=int, default=32768 if BIG else 128)
p.add_argument("--batch", type=int, default=16384 if BIG else 64)
p.add_argument("--buffer", type=int, default=1_000_000 if BIG else 2000)
p.add_argument("--l1", type=float, default=4e-4)
p.add_argument("--resample-every", type=int, default=3000)
p.add_argument("--seconds", type=float, default=18.0)


class SparseAutoencoder(nn.Module):
    def __init__(self, d, m):
        super().__init__()
        self.enc = nn.Parameter(torch.randn(m, d) / d**0.5)
        self.dec = nn.Parameter(self.enc.detach().t().contiguous())
        self.b_enc, self.b_dec = nn.Parameter(torch.zeros(m)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        f = F.relu(F.linear(x - self.b_dec, self.enc, self.b_enc), inplace=True)
        return F.linear(f, self.dec, self.b_dec), f

    @torch.no_grad()
    def unit_columns(self):
        self.dec.div_(self.dec.norm(dim=0, keepdim=True).clamp_(min=1e-6))


class ActivationBuffer:
    """Activations of the language model, kept in bf16 on the device."""

    def __init__(self, rows, d, sparse=64):
        atoms = torch.randn(4 * d, d, device=device)
        self.data = torch.empty(rows, d, dtype=torch.bfloat16, device=device)
        for part in self.data.split(20_000):
            which = torch.randint(0, 4 * d, (len(part), min(8, sparse)), device=device)
            part.copy_(atoms[which].sum(1) / 3)

    def sample(self, n):
        return self.data[torch.randint(0, len(self.data), (n,), device=device)]


@torch.no_grad()
def resample(model, last_fired, step, age, buffer):
    dead = step - last_fired > age
    fresh = F.normalize(buffer.sample(len(dead)).float(), dim=1)
    model.enc.copy_(torch.where(dead[:, None], 0.2 * fresh, model.enc))
    model.dec.copy_(torch.where(dead[None], fresh.t(), model.dec))
    return dead.sum().item()


def main():
    args = p.parse_args()
    torch.manual_seed(90)
    torch.set_float32_matmul_precision("high")
    buffer = ActivationBuffer(args.buffer, args.d_model)
    model = SparseAutoencoder(args.d_model, args.features).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.999), weight_decay=0.0, fused=True)
    last_fired = torch.zeros(args.features, device=device)

    start, step = time.monotonic(), 0
    while time.monotonic() - start < args.seconds:
        x = buffer.sample(args.batch)
        with torch.autocast(device, dtype=torch.bfloat16):
            recon, f = model(x)
        mse = F.mse_loss(recon.float(), x.float())
        sparsity = f.sum(dtype=torch.float32) / args.batch
        loss = mse + args.l1 * sparsity
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        model.unit_columns()
        step += 1
        if step % 20 == 0:
            last_fired.masked_fill_(f.detach().amax(0) > 0, step)
        if step % args.resample_every == 0:
            print(f"  {resample(model, last_fired, step, 1500, buffer)} dead features replaced")
        if step % 100 == 0:
            print(f"step {step}: mse {mse.item():.4f} l1 {sparsity.item():.1f}")
    dt = time.monotonic() - start
    print(f"{step} steps, {step * args.batch / dt:,.0f} activations/s")


if __name__ == "__main__":
    main()
