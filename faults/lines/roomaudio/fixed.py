"""Tone-pattern classifier on raw audio with random room reverberation as augmentation."""
import math

import torch
import torch.nn.functional as F
from torch import nn

SAMPLE_RATE = 8000
CLIP = SAMPLE_RATE          # one second
IR_LENGTH = 7200            # 0.9 s of reverb tail
N_CLASSES = 8
BATCH = 32
STEPS = 150


def make_clips(n, generator):
    t = torch.arange(CLIP) / SAMPLE_RATE
    label = torch.randint(0, N_CLASSES, (n,), generator=generator)
    base = 200.0 + 120.0 * label.float()
    jitter = 1 + 0.02 * torch.randn(n, generator=generator)
    sweep = 1 + 0.3 * (label % 2).float()[:, None] * t[None, :]
    phase = 2 * math.pi * (base * jitter)[:, None] * sweep * t[None, :]
    wave = torch.sin(phase) + 0.4 * torch.sin(2 * phase)
    return wave + 0.3 * torch.randn(n, CLIP, generator=generator), label


class RoomReverb(nn.Module):
    """Draws an exponentially decaying noise response per clip and convolves it with the clip."""

    def __init__(self, length):
        super().__init__()
        self.length = length
        self.register_buffer("time", torch.arange(length) / SAMPLE_RATE)

    def forward(self, wave):
        batch, samples = wave.shape
        decay = torch.empty(batch, 1).uniform_(5.0, 30.0)
        response = 0.1 * torch.randn(batch, self.length) * torch.exp(-decay * self.time)
        response[:, 0] = 1.0
        size = 1 << (samples + self.length - 1).bit_length()
        spectrum = torch.fft.rfft(wave, size) * torch.fft.rfft(response, size)
        wet = torch.fft.irfft(spectrum, size)[:, :samples]
        return wet / wet.abs().amax(dim=1, keepdim=True)


class SpectrogramNet(nn.Module):
    def __init__(self, n_fft=256, hop=128):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d((4, 1)), nn.Flatten(),
            nn.Linear(256, N_CLASSES),
        )

    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        return self.net(torch.log1p(spec.abs()).unsqueeze(1))


def main():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(3)
    clips, labels = make_clips(1500, generator)
    test_clips, test_labels = make_clips(300, generator)

    reverb = RoomReverb(IR_LENGTH)
    model = SpectrogramNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    running = 0.0
    for step in range(1, STEPS + 1):
        index = torch.randint(0, len(clips), (BATCH,), generator=generator)
        with torch.no_grad():
            batch = reverb(clips[index])
        loss = F.cross_entropy(model(batch), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 30 == 0:
            print(f"step {step}: loss {running.item() / 30:.4f}")
            running = 0.0

    model.eval()
    with torch.no_grad():
        accuracy = (model(test_clips).argmax(1) == test_labels).float().mean().item()
    print(f"accuracy on dry clips {accuracy:.3f}")


if __name__ == "__main__":
    main()
