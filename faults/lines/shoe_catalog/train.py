# Product photo classifier with random rotations, blur and colour jitter
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(64)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")

if device == "cuda":
    n_photos, side, batch_size, width, n_classes = 8192, 160, 256, 96, 50
else:
    n_photos, side, batch_size, width, n_classes = 128, 32, 8, 8, 5

# ---- data -------------------------------------------------------------------------------------
photos = torch.randint(0, 256, (n_photos, 3, side, side), dtype=torch.uint8)
labels = torch.randint(0, n_classes, (n_photos,))
photos //= 2
photos += (labels * (100 // n_classes)).to(torch.uint8).view(-1, 1, 1, 1)

k = torch.arange(-3, 4).float()
gauss = torch.exp(-0.5 * (k / 1.5) ** 2)
gauss = (gauss / gauss.sum()).repeat(3, 1)


def rotate(x):
    n = len(x)
    angle = (torch.rand(n, device=x.device) - 0.5) * math.pi / 3
    scale = 0.8 + 0.4 * torch.rand(n, device=x.device)
    cos, sin, zero = scale * angle.cos(), scale * angle.sin(), torch.zeros(n, device=x.device)
    theta = torch.stack([torch.stack([cos, -sin, zero], -1), torch.stack([sin, cos, zero], -1)], 1)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def blur(x):
    g = gauss.to(x.device)
    x = F.conv2d(F.pad(x, (3, 3, 0, 0), mode="reflect"), g.view(3, 1, 1, 7), groups=3)
    return F.conv2d(F.pad(x, (0, 0, 3, 3), mode="reflect"), g.view(3, 1, 7, 1), groups=3)


def jitter(x):
    bright = 0.7 + 0.6 * torch.rand(len(x), 1, 1, 1, device=x.device)
    contrast = 0.7 + 0.6 * torch.rand(len(x), 1, 1, 1, device=x.device)
    grey = x.mean((1, 2, 3), keepdim=True)
    return ((x - grey) * contrast + grey).mul_(bright).clamp_(0, 1)


def augment(u8):
    x = rotate(u8.float() / 255)
    return jitter(torch.where(torch.rand(len(x), 1, 1, 1, device=x.device) < 0.3, blur(x), x))


# ---- model ------------------------------------------------------------------------------------
class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
        self.c2, self.b2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)

    def forward(self, x):
        return F.relu(x + self.b2(self.c2(F.relu(self.b1(self.c1(x)), inplace=True))), inplace=True)


w = width
net = nn.Sequential(
    nn.Conv2d(3, w, 4, stride=4), Res(w), nn.Conv2d(w, 2 * w, 2, stride=2), Res(2 * w), Res(2 * w),
    nn.Conv2d(2 * w, 4 * w, 2, stride=2), Res(4 * w), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, n_classes))
net = net.to(device, memory_format=torch.channels_last)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05, fused=True)

# ---- training ---------------------------------------------------------------------------------
if device == "cuda":
    photos, labels = photos.pin_memory(), labels.pin_memory()
t0, step = time.monotonic(), 0
while time.monotonic() - t0 < 18:
    start = int(torch.randint(0, n_photos - batch_size + 1, ()))
    images = augment(photos[start : start + batch_size]).to(device, non_blocking=True)
    target = labels[start : start + batch_size].to(device, non_blocking=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = F.cross_entropy(net(images.contiguous(memory_format=torch.channels_last)), target)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    step += 1
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.3f}")
print(f"{step} steps, {step * batch_size / (time.monotonic() - t0):.0f} photos/s, loss {loss.item():.3f}")
