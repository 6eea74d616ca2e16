"""ResNet-50 on herbarium photos. Everything is augmented on the device."""
import random
import time

import torch
import torch.nn.functional as F
from torchvision.models import resnet18, resnet50

random.seed(0)
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
GPU = device == "cuda"
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")

STORED, CROP = (192, 176) if GPU else (40, 32)
BATCH = 384 if GPU else 8
SPECIES = 300 if GPU else 5
PHOTOS = 12_000 if GPU else 64
EVAL_EVERY = 2000


def herbarium():
    x = torch.randint(0, 160, (PHOTOS, 3, STORED, STORED), dtype=torch.uint8, device=device)
    y = torch.randint(0, SPECIES, (PHOTOS,), device=device)
    for start in range(0, PHOTOS, 1000):
        part = slice(start, start + 1000)
        x[part] += (y[part] % 90).to(torch.uint8).view(-1, 1, 1, 1)
    return x, y


def train_batch(x, y, mean, std):
    idx = torch.randint(0, len(x), (BATCH,), device=device)
    top, left = random.randint(0, STORED - CROP), random.randint(0, STORED - CROP)
    img = x[idx, :, top : top + CROP, left : left + CROP]
    img = img.to(memory_format=torch.channels_last, dtype=torch.bfloat16).sub_(mean).div_(std)
    flip = torch.rand(BATCH, 1, 1, 1, device=device) < 0.5
    img = torch.where(flip, img.flip(-1), img)
    lam = random.betavariate(0.2, 0.2)
    perm = torch.randperm(BATCH, device=device)
    target = F.one_hot(y[idx], SPECIES).float()
    return img.lerp(img[perm], 1 - lam), target.lerp(target[perm], 1 - lam)


@torch.no_grad()
def accuracy(net, x, y, mean, std, n=1024):
    net.eval()
    hits = torch.zeros((), device=device)
    for s in range(0, min(n, len(x)), BATCH):
        img = x[s : s + BATCH, :, :CROP, :CROP].to(memory_format=torch.channels_last, dtype=torch.bfloat16)
        with torch.autocast(device, dtype=torch.bfloat16):
            hits += (net(img.sub_(mean).div_(std)).argmax(1) == y[s : s + BATCH]).sum()
    net.train()
    return hits.item() / min(n, len(x))


def main():
    x, y = herbarium()
    mean = torch.tensor([110.0, 110.0, 110.0], device=device).view(1, 3, 1, 1)
    std = torch.tensor([60.0, 60.0, 60.0], device=device).view(1, 3, 1, 1)
    net = (resnet50 if GPU else resnet18)(weights=None, num_classes=SPECIES)
    net = net.to(device, memory_format=torch.channels_last).train()
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-5, nesterov=True, fused=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.4, total_steps=50_000)

    tick, step = time.monotonic(), 0
    while time.monotonic() - tick < 18:
        img, target = train_batch(x, y, mean, std)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(img), target, label_smoothing=0.1)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}, {step * BATCH / (time.monotonic() - tick):.0f} img/s")
        if step % EVAL_EVERY == 0:
            print(f"  accuracy {accuracy(net, x, y, mean, std):.3f}")
    print(f"end: {step} steps, accuracy {accuracy(net, x, y, mean, std):.3f}")


if __name__ == "__main__":
    main()
