"""Bird species from log-mel patches. Transformer encoder with adaptive gradient clipping (AGC)."""
import math
import time

import torch
import torch.nn as nn

torch.manual_seed(2024)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LARGE = device.type == "cuda"
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True

CFG = dict(dim=512, heads=8, layers=24, frames=250, mels=128, classes=264, batch=40, clips=4000)
if not LARGE:
    CFG.update(dim=32, heads=2, layers=3, frames=40, mels=16, classes=10, batch=8, clips=64)


class SongEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.proj = nn.Linear(c["mels"], c["dim"])
        pos = torch.arange(c["frames"])[:, None] * torch.exp(-math.log(1e4) * torch.arange(0, c["dim"], 2) / c["dim"])
        self.register_buffer("pos", torch.cat([pos.sin(), pos.cos()], -1))
        layer = nn.TransformerEncoderLayer(
            c["dim"], c["heads"], 4 * c["dim"], dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, c["layers"], enable_nested_tensor=False)
        self.norm = nn.LayerNorm(c["dim"])
        self.cls = nn.Linear(c["dim"], c["classes"])

    def forward(self, mel):
        h = self.enc(self.proj(mel) + self.pos)
        return self.cls(self.norm(h).mean(1))


class AGC:
    """Clip each weight's gradient to a fraction of the weight's own norm (Brock et al., 2021)."""

    def __init__(self, params, ratio=0.02, eps=1e-3):
        self.params = [p for p in params if p.requires_grad]
        self.ratio, self.eps = ratio, eps

    @torch.no_grad()
    def __call__(self):
        for p in self.params:
            limit = self.ratio * p.norm().clamp(min=self.eps)
            gnorm = p.grad.norm()
            if gnorm > limit:
                p.grad.mul_(limit / gnorm)


def train():
    c = CFG
    mel = torch.randn(c["clips"], c["frames"], c["mels"], device=device)
    species = torch.randint(0, c["classes"], (c["clips"],), device=device)
    mel += 0.3 * torch.randn(c["classes"], 1, c["mels"], device=device)[species]

    model = SongEncoder(c).to(device)
    agc = AGC(model.parameters())
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.98), weight_decay=0.05, fused=True)
    criterion = nn.CrossEntropyLoss()
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters on {device}")

    n, t0 = 0, time.monotonic()
    while time.monotonic() - t0 < 18:
        idx = torch.randint(0, c["clips"], (c["batch"],), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = criterion(model(mel[idx]), species[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        agc()
        opt.step()
        n += 1
        if n % 100 == 0:
            print(f"[{n}] loss={loss.item():.4f}")
    dt = time.monotonic() - t0
    print(f"{n} updates, {1000 * dt / n:.1f} ms/update, loss={loss.item():.4f}")


train()
