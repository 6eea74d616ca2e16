import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)

GRID, STRIDE, N_CLS, IMG = 8, 8, 5, 64
TIME_BUDGET = 18.0
ANCHORS = torch.tensor([[8.0, 8.0], [14.0, 14.0], [22.0, 19.0]])


class SignScenes:
    """Renders coloured rectangles as traffic signs on a noisy street."""

    def __init__(self, n=512):
        self.images = torch.rand(n, 3, IMG, IMG) * 0.3
        self.targets = []
        palette = torch.rand(N_CLS, 3, 1, 1)
        for i in range(n):
            boxes = []
            for _ in range(int(torch.randint(4, 9, (1,)))):
                w, h = (torch.rand(2) * 18 + 6).tolist()
                cx = w / 2 + torch.rand(1).item() * (IMG - w)
                cy = h / 2 + torch.rand(1).item() * (IMG - h)
                c = int(torch.randint(0, N_CLS, (1,)))
                self.images[i, :, int(cy - h / 2):int(cy + h / 2), int(cx - w / 2):int(cx + w / 2)] = palette[c]
                boxes.append([c, cx, cy, w, h])
            self.targets.append(torch.tensor(boxes))

    def batches(self, size):
        order = torch.randperm(len(self.targets))
        for i in range(0, len(order) - size + 1, size):
            idx = order[i:i + size]
            yield self.images[idx], [self.targets[j] for j in idx.tolist()]


class SignNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers, c = [], 3
        for out in (16, 32, 64):
            layers += [nn.Conv2d(c, out, 3, stride=2, padding=1), nn.BatchNorm2d(out), nn.SiLU()]
            c = out
        self.backbone = nn.Sequential(*layers)
        self.head = nn.Conv2d(c, 3 * (5 + N_CLS), 1)

    def forward(self, x):
        p = self.head(self.backbone(x))
        return p.view(x.size(0), 3, 5 + N_CLS, GRID, GRID).permute(0, 1, 3, 4, 2)


class GridLoss(nn.Module):
    def best_anchor(self, wh):
        inter = torch.minimum(wh[..., None, :], ANCHORS).prod(-1)
        union = wh.prod(-1, keepdim=True) + ANCHORS.prod(-1) - inter
        return (inter / union).argmax(-1)

    def forward(self, pred, targets):
        obj_target = torch.zeros(pred.shape[:4])
        loc, cls, count = 0.0, 0.0, 0
        for b, boxes in enumerate(targets):
            for box in boxes:
                c, cx, cy, w, h = box
                gi, gj = int(cx // STRIDE), int(cy // STRIDE)
                a = int(self.best_anchor(box[3:]))
                p = pred[b, a, gj, gi]
                xy = torch.sigmoid(p[:2])
                tx = torch.stack([cx / STRIDE - gi, cy / STRIDE - gj])
                tw = torch.log(box[3:] / ANCHORS[a])
                loc = loc + F.mse_loss(xy, tx, reduction="sum") + F.smooth_l1_loss(p[2:4], tw, reduction="sum")
                cls = cls + F.cross_entropy(p[5:].unsqueeze(0), c.long().unsqueeze(0))
                obj_target[b, a, gj, gi] = 1.0
                count += 1
        obj = F.binary_cross_entropy_with_logits(pred[..., 4], obj_target)
        return 10 * obj + (loc + cls) / max(count, 1)


scenes = SignScenes()
net = SignNet()
loss_fn = GridLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * min(s / 2000, 1))))

began = time.monotonic()
it = 0
out_of_time = False
while not out_of_time:
    for images, targets in scenes.batches(32):
        loss = loss_fn(net(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        it += 1
        if it % 20 == 0:
            print(f"[{it:5d}] loss={loss.item():.3f} lr={scheduler.get_last_lr()[0]:.4f}")
        if time.monotonic() - began > TIME_BUDGET:
            out_of_time = True
            break
print(f"{it} iterations, {it / (time.monotonic() - began):.2f} it/s")
