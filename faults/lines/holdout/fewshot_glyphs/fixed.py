import time

import torch
from torch import nn
from torch.nn import functional as F


class GlyphPool:
    """Random glyph alphabets: every class is a set of strokes, every drawing a noisy copy."""

    def __init__(self, classes=60, size=28, seed=61):
        g = torch.Generator().manual_seed(seed)
        self.size = size
        coarse = (torch.rand(classes, 1, 7, 7, generator=g) < 0.3).float()
        self.templates = F.interpolate(coarse, size=(size, size), mode="bilinear")
        self.gen = g

    def draw(self, cls, n):
        base = self.templates[cls].repeat_interleave(n, 0)
        shift = torch.randint(-2, 3, (2,), generator=self.gen).tolist()
        base = torch.roll(base, shift, (2, 3))
        return base + 0.3 * torch.randn(base.shape, generator=self.gen)

    def episode(self, ways, shots, queries):
        cls = torch.randperm(len(self.templates), generator=self.gen)[:ways]
        return self.draw(cls, shots), self.draw(cls, queries)


def layer(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.ReLU(), nn.MaxPool2d(2))


class ProtoNet(nn.Module):
    def __init__(self, ways, shots, queries, width=24):
        super().__init__()
        self.ways, self.shots, self.queries = ways, shots, queries
        self.encoder = nn.Sequential(layer(1, width), layer(width, width), layer(width, width), nn.Flatten())
        self.scale = nn.Parameter(torch.tensor(0.1))

    def prototypes(self, support):
        return self.encoder(support).view(self.ways, self.shots, -1).mean(1)

    def logits(self, centers, group):
        z = self.encoder(group)
        distance = torch.cdist(z, centers).square()
        return -self.scale.abs() * distance

    def forward(self, support, query):
        """Mean loss and accuracy over the query groups (one group per class)."""
        losses, hits = [], 0
        centers = self.prototypes(support)
        for way, group in enumerate(query.split(self.queries)):
            want = torch.full((len(group),), way)
            out = self.logits(centers, group)
            losses.append(F.cross_entropy(out, want))
            hits += int((out.argmax(1) == want).sum())
        return torch.stack(losses).mean(), hits / len(query)


class Meter:
    def __init__(self, keep=0.95):
        self.keep, self.value = keep, None

    def add(self, v):
        self.value = v if self.value is None else self.keep * self.value + (1 - self.keep) * v


def main(seconds=12.0, ways=5, shots=5, queries=8):
    torch.manual_seed(62)
    pool = GlyphPool()
    net = ProtoNet(ways, shots, queries)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, 200, 0.5)
    loss_meter, hit_meter = Meter(), Meter()
    episodes = 0
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        support, query = pool.episode(ways, shots, queries)
        loss, hit = net(support, query)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        loss_meter.add(loss.item())
        hit_meter.add(hit)
        episodes += 1
        if episodes % 50 == 0:
            print(f"{episodes}: loss {loss_meter.value:.3f} accuracy {hit_meter.value:.3f}", flush=True)
    print(f"steps: {episodes}")


if __name__ == "__main__":
    main()
