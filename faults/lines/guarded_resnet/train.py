"""Residual CNN with activation guarding on noisy radar tiles."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
batch_size = 64 if device == "cuda" else 16
LIMIT = 30.0


class GuardedBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv1 = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(ch)
        self.conv2 = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(ch)

    def guard(self, h):
        if (h.detach().abs() > LIMIT).any():
            h = h.clamp(-LIMIT, LIMIT)
        energy = h.detach().pow(2).mean(dim=(1, 2, 3))
        noisy = (energy > 4.0).nonzero().squeeze(1)
        if len(noisy) > 0:
            gain = torch.ones_like(energy)
            gain[noisy] = (4.0 / energy[noisy]).sqrt()
            h = h * gain.view(-1, 1, 1, 1)
        return h

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        h = self.bn2(self.conv2(h))
        return F.relu(self.guard(x + h))


class RadarNet(nn.Module):
    def __init__(self, ch=32, blocks=12, classes=6):
        super().__init__()
        self.stem = nn.Conv2d(2, ch, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*[GuardedBlock(ch) for _ in range(blocks)])
        self.head = nn.Linear(ch, classes)

    def forward(self, x):
        h = self.blocks(F.relu(self.stem(x)))
        return self.head(h.mean(dim=(2, 3)))


def tiles(n=4000, size=24, classes=6):
    g = torch.Generator().manual_seed(2)
    proto = torch.randn(classes, 2, size, size, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    return proto[y] + 2.0 * torch.randn(n, 2, size, size, generator=g), y


def main():
    torch.manual_seed(0)
    x, y = (t.to(device) for t in tiles())
    net = RadarNet().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    step, begin = 0, time.time()
    losses = torch.zeros((), device=device)
    while time.time() - begin < 14:
        idx = torch.randint(0, len(y), (batch_size,), device=device)
        loss = F.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses += loss.detach()
        step += 1
        if step % 100 == 0:
            print(f"step {step} mean loss {losses.item() / 100:.4f}")
            losses.zero_()
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = time.time() - begin
    print(f"{step / seconds:.2f} steps/s, {step * batch_size / seconds:.1f} samples/s")


if __name__ == "__main__":
    main()
