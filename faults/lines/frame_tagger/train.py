import time
import torch
from torch import nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(11)

cfg = dict(
    n_clips=1500,
    frames=200,
    mels=40,
    width=96,
    n_phones=42,
    batch=128 if device == "cuda" else 16,
    lr=1e-3,
    budget_s=14,
    log_every=50,
)


def synth_speech(n, frames, mels, n_phones):
    proto = torch.randn(n_phones, mels)
    seg = torch.randint(0, n_phones, (n, frames // 8))
    phones = seg.repeat_interleave(8, dim=1)
    feats = proto[phones] + 0.8 * torch.randn(n, frames, mels)
    return feats, phones


class ConvEncoder(nn.Module):
    def __init__(self, mels, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(mels, width, 5, padding=2), nn.GELU(),
            nn.Conv1d(width, width, 5, padding=4, dilation=2), nn.GELU(),
            nn.Conv1d(width, width, 5, padding=8, dilation=4), nn.GELU(),
        )

    def forward(self, x):
        return self.net(x.transpose(1, 2)).transpose(1, 2)


class FrameTagger(nn.Module):
    def __init__(self, mels, width, n_phones):
        super().__init__()
        self.encoder = ConvEncoder(mels, width)
        self.head = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, n_phones),
        )

    def forward(self, feats):
        h = self.encoder(feats)
        logits = []
        for h_t in h.unbind(dim=1):
            logits.append(self.head(h_t))
        return torch.stack(logits, dim=1)


feats, phones = synth_speech(cfg["n_clips"], cfg["frames"], cfg["mels"], cfg["n_phones"])
feats, phones = feats.to(device), phones.to(device)
model = FrameTagger(cfg["mels"], cfg["width"], cfg["n_phones"]).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])

step = 0
epoch = 0
done = False
t0 = time.time()
while not done:
    perm = torch.randperm(cfg["n_clips"], device=device)
    for idx in perm.split(cfg["batch"]):
        if len(idx) < cfg["batch"]:
            continue
        out = model(feats[idx])
        loss = F.cross_entropy(out.flatten(0, 1), phones[idx].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % cfg["log_every"] == 0:
            with torch.no_grad():
                acc = (out.argmax(-1) == phones[idx]).float().mean()
            print(f"[{epoch}] step {step}: loss={loss.item():.3f} frame_acc={acc.item():.3f}")
        if time.time() - t0 > cfg["budget_s"]:
            done = True
            break
    epoch += 1

if device == "cuda":
    torch.cuda.synchronize()
dt = time.time() - t0
print(f"{step} steps in {dt:.1f}s -> {step / dt:.2f} steps/s, {step * cfg['batch'] / dt:.1f} samples/s")
