# Search for short transients in detector strain: time-frequency front end + 1-D conv classifier
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
gpu = device == "cuda"
torch.manual_seed(31)
np.random.seed(31)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True

N_FFT, HOP = (2048, 512) if gpu else (256, 128)
FRAMES = 1500 if gpu else 40
BATCH = 128 if gpu else 8
BANK = 512 if gpu else 32
CH = 512 if gpu else 16


class TimeFrequency(nn.Module):
    """Windowed Fourier power on frames that overlap, on a slightly warped frequency axis."""

    def __init__(self, n_fft, hop, warp=1.05):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        n = np.arange(n_fft)
        bins = (np.arange(n_fft // 2) / (n_fft // 2)) ** warp * (n_fft // 2)
        phase = 2 * np.pi * np.outer(n, bins) / n_fft
        window = np.hanning(n_fft)[:, None]
        basis = np.concatenate([window * np.cos(phase), window * np.sin(phase)], axis=1)
        self.register_buffer("basis", torch.from_numpy(basis / np.sqrt(n_fft)).float())

    @torch.no_grad()
    def forward(self, wave):
        frames = wave.unfold(-1, self.n_fft, self.hop)
        spec = frames.to(self.basis.dtype) @ self.basis
        re, im = spec.chunk(2, dim=-1)
        power = torch.log1p(re.square() + im.square())
        return power.float().transpose(1, 2)


class Detector(nn.Module):
    def __init__(self, bins, ch):
        super().__init__()
        self.tf = TimeFrequency(N_FFT, HOP)
        self.convs = nn.ModuleList([
            nn.Conv1d(bins, ch, 5, stride=1, padding=2),
            nn.Conv1d(ch, ch, 5, stride=2, padding=2),
            nn.Conv1d(ch, ch, 5, stride=2, padding=2),
        ])
        self.out = nn.Linear(ch, 2)

    def forward(self, wave):
        h = self.tf(wave)
        for conv in self.convs:
            h = F.relu(conv(h))
        return self.out(h.amax(-1))


def strain_bank():
    length = N_FFT + HOP * (FRAMES - 1)
    noise = torch.randn(BANK, length, device=device)
    has_signal = torch.rand(BANK, device=device) < 0.5
    t = torch.linspace(0, 1, length, device=device)
    chirp = torch.sin(400 * t**3) * torch.exp(-((t - 0.6) / 0.1) ** 2)
    noise += 0.5 * has_signal[:, None] * chirp
    return noise, has_signal.long()


strain, truth = strain_bank()
net = Detector(N_FFT // 2, CH).to(device)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
print("bank", tuple(strain.shape), "frames per clip", FRAMES)

begin = time.monotonic()
it = 0
while time.monotonic() - begin < 18:
    pick = torch.randint(0, BANK, (BATCH,), device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = net(strain[pick])
        loss = F.cross_entropy(logits, truth[pick])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    it += 1
    if it % 50 == 0:
        print(f"iter {it}: loss {loss.item():.4f}")
print(f"{it} iterations, {it * BATCH / (time.monotonic() - begin):.1f} clips/s")
