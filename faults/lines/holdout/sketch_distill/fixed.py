import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import BatchSampler, RandomSampler


def strokes(n, classes=8, size=40, seed=51):
    """Line drawings: Lissajous figures whose frequency ratio is the class."""
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, classes, (n,), generator=g)
    t = torch.linspace(0, 2 * math.pi, 240)
    phase = torch.rand(n, 1, generator=g) * 2 * math.pi
    a, b = 1 + kind % 4, 2 + kind // 4
    x = torch.sin(a[:, None] * t + phase)
    y = torch.sin(b[:, None] * t)
    scale = torch.rand(n, 1, generator=g) * 0.3 + 0.6
    px = ((x * scale + 1) / 2 * (size - 1)).round().long()
    py = ((y * scale + 1) / 2 * (size - 1)).round().long()
    img = torch.zeros(n, size * size)
    img.scatter_(1, py * size + px, 1.0)
    return img.view(n, 1, size, size), kind


class Net(nn.Module):
    def __init__(self, widths, classes, extra=0):
        super().__init__()
        layers, last = [], 1
        for w in widths:
            layers += [nn.Conv2d(last, w, 3, padding=1), nn.GroupNorm(4, w), nn.ReLU()]
            for _ in range(extra):
                layers += [nn.Conv2d(w, w, 3, padding=1), nn.GroupNorm(4, w), nn.ReLU()]
            layers += [nn.MaxPool2d(2)]
            last = w
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(last, classes)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def pretrain(net, x, y, rounds, batch=32):
    """A short warm start so that the teacher has something to say."""
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for r in range(rounds):
        pick = torch.randint(0, len(x), (batch,))
        loss = F.cross_entropy(net(x[pick]), y[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net.eval().requires_grad_(False)


def soft_loss(student, teacher, y, heat=3.0, mix=0.7):
    soft = F.kl_div(F.log_softmax(student / heat, 1), F.softmax(teacher / heat, 1), reduction="batchmean")
    return mix * heat * heat * soft + (1 - mix) * F.cross_entropy(student, y)


def distill(seconds=12.0, batch=48):
    torch.manual_seed(51)
    x, y = strokes(960)
    teacher = pretrain(Net([16, 32, 64], 8, extra=1), x, y, rounds=12)
    student = Net([8, 16, 32], 8)
    opt = torch.optim.AdamW(student.parameters(), lr=2e-3)
    sampler = BatchSampler(RandomSampler(x), batch, drop_last=True)
    with torch.no_grad():
        answers = torch.cat([teacher(part) for part in x.split(96)])

    steps, agree = 0, 0.0
    begin = time.monotonic()
    while True:
        for pick in sampler:
            drawing, label = x[pick], y[pick]
            answer = answers[pick]
            out = student(drawing)
            loss = soft_loss(out, answer, label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            steps += 1
            agree += 0.05 * ((out.argmax(1) == answer.argmax(1)).float().mean().item() - agree)
            if steps % 40 == 0:
                print(f"step {steps:4d}  loss {loss.item():.4f}  agreement {agree:.3f}", flush=True)
            if time.monotonic() - begin > seconds:
                return steps


if __name__ == "__main__":
    print(f"steps: {distill()}")
