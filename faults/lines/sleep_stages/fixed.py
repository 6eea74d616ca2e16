"""Sleep staging from single-channel EEG epochs (30 s at 100 Hz)."""
import argparse
import time

import torch
import torch.nn as nn

STAGES = ("W", "N1", "N2", "N3", "REM")


def eeg(n, rate=100, seconds=30):
    t = torch.arange(rate * seconds) / rate
    stage = torch.randint(0, len(STAGES), (n,))
    centre = torch.tensor([10.0, 7.0, 13.0, 1.5, 5.0])[stage]
    freq = centre[:, None] + 0.4 * torch.randn(n, 1)
    power = torch.tensor([1.0, 0.8, 1.2, 2.5, 0.9])[stage][:, None]
    x = power * torch.sin(2 * torch.pi * freq * t + 6.28 * torch.rand(n, 1))
    return x + 1.5 * torch.randn(n, len(t)), stage


class Framing(nn.Module):
    def __init__(self, frame=100, hop=10):
        super().__init__()
        self.frame, self.hop = frame, hop
        self.register_buffer("taper", torch.hamming_window(frame))

    def forward(self, x):
        return x.unfold(1, self.frame, self.hop) * self.taper


class SleepNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.framing = Framing()
        self.embed = nn.Sequential(nn.Linear(100, dim), nn.GELU(), nn.LayerNorm(dim))
        self.mix = nn.Sequential(nn.Conv1d(dim, dim, 5, stride=2), nn.GELU(), nn.Conv1d(dim, dim, 5, stride=2), nn.GELU())
        self.head = nn.Linear(dim, len(STAGES))

    def forward(self, x):
        h = self.embed(self.framing(x))
        h = self.mix(h.transpose(1, 2))
        return self.head(h.mean(-1))


def parse():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--nights", type=int, default=4)
    p.add_argument("--epochs-per-night", type=int, default=500)
    p.add_argument("--bs", type=int, default=32)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--max-time", type=float, default=18.0)
    p.add_argument("--seed", type=int, default=90)
    return p.parse_args()


def main():
    a = parse()
    torch.manual_seed(a.seed)
    x, y = eeg(a.nights * a.epochs_per_night)
    x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
    net = SleepNet()
    opt = torch.optim.NAdam(net.parameters(), lr=a.lr)
    clock = time.monotonic
    t0, done, hits, seen = clock(), 0, 0, 0
    while clock() - t0 < a.max_time:
        for idx in torch.randperm(len(y)).split(a.bs):
            logits = net(x[idx])
            loss = nn.functional.cross_entropy(logits, y[idx])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            done += 1
            hits += (logits.argmax(1) == y[idx]).sum().item()
            seen += len(idx)
            if done % 20 == 0:
                print(f"{done:4d} loss {loss.item():.3f} acc {hits / seen:.3f}")
                hits = seen = 0
            if clock() - t0 > a.max_time:
                break
    print(f"ran {done / (clock() - t0):.2f} steps/s")


if __name__ == "__main__":
    main()
