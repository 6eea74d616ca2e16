"""Distil a large keyword-spotting transformer into a small one."""
import time
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
HAVE_GPU = device == "cuda"
torch.set_float32_matmul_precision("high")
torch.manual_seed(9)

FRAMES, MELS, WORDS = (128, 80, 35) if HAVE_GPU else (20, 16, 5)
BATCH = 128 if HAVE_GPU else 8
TEACHER = dict(dim=1024, depth=16, heads=16) if HAVE_GPU else dict(dim=64, depth=3, heads=4)
STUDENT = dict(dim=512, depth=8, heads=8) if HAVE_GPU else dict(dim=32, depth=2, heads=2)


class KeywordNet(nn.Module):
    def __init__(self, dim, depth, heads):
        super().__init__()
        self.stem = nn.Linear(MELS, dim)
        self.pos = nn.Parameter(torch.randn(FRAMES, dim) * 0.02)
        make = lambda: nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.ModuleList(make() for _ in range(depth))
        self.head = nn.Linear(dim, WORDS)

    def forward(self, mel):
        x = self.stem(mel) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class Distiller:
    def __init__(self, teacher, student, temperature=2.0, alpha=0.7):
        self.teacher = teacher.to(device).eval().requires_grad_(False)
        self.student = student.to(device)
        self.temperature, self.alpha = temperature, alpha
        self.opt = torch.optim.AdamW(self.student.parameters(), lr=5e-4, fused=True)
        self.amp = lambda: torch.autocast(device, dtype=torch.bfloat16) if HAVE_GPU else nullcontext()

    @torch.no_grad()
    def soft_targets(self, mel):
        with self.amp():
            logits = self.teacher(mel)
        return F.softmax(logits.float() / self.temperature, dim=-1)

    def step(self, mel, word):
        soft = self.soft_targets(mel)
        with self.amp():
            logits = self.student(mel)
        logp = F.log_softmax(logits.float() / self.temperature, dim=-1)
        kd = F.kl_div(logp, soft, reduction="batchmean") * self.temperature**2
        loss = self.alpha * kd + (1 - self.alpha) * F.cross_entropy(logits.float(), word)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()


def recordings(n):
    word = torch.randint(0, WORDS, (n,), device=device)
    pattern = torch.randn(WORDS, FRAMES, MELS, device=device)
    return pattern[word] + torch.randn(n, FRAMES, MELS, device=device), word


def main():
    mel, word = recordings(20_000 if HAVE_GPU else 200)
    distiller = Distiller(KeywordNet(**TEACHER), KeywordNet(**STUDENT))
    for name in ("teacher", "student"):
        size = sum(p.numel() for p in getattr(distiller, name).parameters())
        print(f"{name}: {size / 1e6:.1f}M parameters")
    begun, count = time.monotonic(), 0
    while time.monotonic() - begun < 18:
        idx = torch.randint(0, len(mel), (BATCH,), device=device)
        loss = distiller.step(mel[idx], word[idx])
        count += 1
        if count % 50 == 0:
            print(f"step {count}: {loss.item():.4f}")
    elapsed = time.monotonic() - begun
    print(f"{count} steps, {count * BATCH / elapsed:.0f} clips/s, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
