import time

import torch
import torch.nn as nn
import torch.nn.functional as F

NUM_WORKER_THREADS = 64
torch.set_num_threads(NUM_WORKER_THREADS)
torch.manual_seed(7)
device = "cuda" if torch.cuda.is_available() else "cpu"
batch_size = 512 if device == "cuda" else 64
window, channels, horizon = 96, 12, 24


def make_load_curves(n_days=2500):
    t = torch.arange(n_days * 24, dtype=torch.float32)
    phase = torch.rand(channels) * 6.28
    daily = torch.sin(2 * torch.pi * t[:, None] / 24 + phase)
    weekly = 0.5 * torch.sin(2 * torch.pi * t[:, None] / 168 + phase)
    return daily + weekly + 0.2 * torch.randn(len(t), channels)


class Forecaster(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(channels, hidden, 7, padding=3), nn.GELU(),
            nn.Conv1d(hidden, hidden, 5, padding=2), nn.GELU(),
            nn.Conv1d(hidden, hidden, 5, padding=2, stride=2), nn.GELU(),
        )
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden * window // 2, horizon * channels)

    def forward(self, x):
        h = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return self.out(self.norm(h).flatten(1)).view(-1, horizon, channels)


series = make_load_curves().to(device)
n_windows = len(series) - window - horizon
in_offsets = torch.arange(window, device=device)
out_offsets = torch.arange(window, window + horizon, device=device)
model = Forecaster().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

step = 0
t_begin = time.time()
while time.time() - t_begin < 14:
    first = torch.randint(0, n_windows, (batch_size, 1), device=device)
    x = series[first + in_offsets]
    y = series[first + out_offsets]
    pred = model(x)
    loss = F.l1_loss(pred, y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    step += 1
    if step % 50 == 0:
        print(f"step {step} mae {loss.item():.4f}")

if device == "cuda":
    torch.cuda.synchronize()
wall = time.time() - t_begin
print(f"{step / wall:.2f} steps/s; {step * batch_size / wall:.1f} samples/s")
