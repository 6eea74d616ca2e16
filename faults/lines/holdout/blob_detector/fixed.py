import time

import torch
import torch.nn as nn
import torch.nn.functional as F

IMAGE, STRIDE = 96, 8
SIZES = (10.0, 14.0, 18.0, 24.0)
BATCH = 12


def paint(n, seed):
    """Images with four to eight bright discs and the boxes around them."""
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(IMAGE), torch.arange(IMAGE), indexing="ij")
    images = torch.randn(n, 1, IMAGE, IMAGE, generator=g) * 0.15
    boxes = []
    for i in range(n):
        k = int(torch.randint(4, 9, (1,), generator=g))
        center = torch.rand(k, 2, generator=g) * (IMAGE - 24) + 12
        radius = torch.rand(k, generator=g) * 7 + 4
        for (cx, cy), r in zip(center.tolist(), radius.tolist()):
            images[i, 0] += torch.sigmoid(r - ((xx - cx) ** 2 + (yy - cy) ** 2).sqrt())
        boxes.append(torch.cat([center - radius[:, None], center + radius[:, None]], 1))
    return images, boxes


def anchor_grid():
    centers = (torch.arange(IMAGE // STRIDE) + 0.5) * STRIDE
    cy, cx = torch.meshgrid(centers, centers, indexing="ij")
    c = torch.stack([cx, cy], -1).reshape(-1, 2).repeat_interleave(len(SIZES), 0)
    half = torch.tensor(SIZES).repeat(len(c) // len(SIZES))[:, None] / 2
    return torch.cat([c - half, c + half], 1)


def overlap(a, b):
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (high - low).clamp_min(0).prod(-1)
    area_a = (a[:, 2:] - a[:, :2]).prod(-1)
    area_b = (b[:, 2:] - b[:, :2]).prod(-1)
    return inter / (area_a[:, None] + area_b - inter)


def assign(anchors, boxes, threshold=0.4):
    """For each anchor the index of its box, or -1."""
    best, which = overlap(anchors, boxes).max(1)
    return torch.where(best > threshold, which, -1)


def offsets(anchors, boxes):
    size_a, size_b = anchors[:, 2:] - anchors[:, :2], boxes[:, 2:] - boxes[:, :2]
    center_a, center_b = anchors[:, :2] + size_a / 2, boxes[:, :2] + size_b / 2
    return torch.cat([(center_b - center_a) / size_a, (size_b / size_a).log()], 1)


class Detector(nn.Module):
    def __init__(self, width=16):
        super().__init__()

        def stage(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.GroupNorm(4, b), nn.SiLU(),
                                 nn.Conv2d(b, b, 3, 1, 1), nn.GroupNorm(4, b), nn.SiLU())

        self.trunk = nn.Sequential(stage(1, width), stage(width, 2 * width), stage(2 * width, 4 * width))
        self.head = nn.Conv2d(4 * width, 5 * len(SIZES), 1)
        nn.init.constant_(self.head.bias, -1.0)

    def forward(self, x):
        out = self.head(self.trunk(x)).permute(0, 2, 3, 1)
        out = out.reshape(len(x), -1, 5)
        return out[..., 0], out[..., 1:]


def flip(image, boxes):
    image = image.flip(-1)
    boxes = boxes.clone()
    boxes[:, [0, 2]] = IMAGE - boxes[:, [2, 0]]
    return image, boxes


def batch_of(images, boxes, anchors, gen):
    xs, owners, wants = [], [], []
    for i in torch.randint(0, len(images), (BATCH,), generator=gen).tolist():
        x, b = images[i], boxes[i]
        if torch.rand(1, generator=gen).item() < 0.5:
            x, b = flip(x, b)
        owner = assign(anchors, b)
        xs.append(x)
        owners.append(owner)
        wants.append(offsets(anchors, b[owner.clamp_min(0)]))
    return torch.stack(xs), torch.stack(owners), torch.stack(wants)


def main():
    torch.manual_seed(41)
    images, boxes = paint(300, seed=41)
    anchors = anchor_grid()
    gen = torch.Generator().manual_seed(42)
    model = Detector()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    steps, t0 = 0, time.monotonic()
    while time.monotonic() - t0 < 12:
        x, owner, want = batch_of(images, boxes, anchors, gen)
        score, shift = model(x)
        positive = owner >= 0
        objectness = F.binary_cross_entropy_with_logits(score, positive.float())
        regression = F.smooth_l1_loss(shift[positive], want[positive])
        loss = 3 * objectness + regression
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        if steps % 50 == 0:
            print(f"{steps} obj {objectness.item():.3f} reg {regression.item():.3f}", flush=True)
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
