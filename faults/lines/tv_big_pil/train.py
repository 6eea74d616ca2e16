"""torchvision: small CNN on photos that are stored larger than the network input."""
import random
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms as T

CUDA = torch.cuda.is_available()
CLASSES = 10


def make_photos(n=24):
    rng = np.random.default_rng(0)
    photos = []
    for i in range(n):
        small = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
        photos.append(Image.fromarray(small).resize((800, 600), Image.BILINEAR))
    return photos


class Photos(Dataset):
    def __init__(self, photos, transform, length=2000):
        self.photos, self.transform, self.length = photos, transform, length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        k = i % len(self.photos)
        return self.transform(self.photos[k]), k % CLASSES


train_tf = T.Compose([
    T.ColorJitter(0.4, 0.4, 0.4, 0.1),
    T.GaussianBlur(5, sigma=(0.1, 2.0)),
    T.RandomResizedCrop(96, scale=(0.4, 1.0)),
    T.RandomHorizontalFlip(),
    T.ToTensor(),
    T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
])


def main():
    torch.manual_seed(0)
    random.seed(0)
    device = torch.device("cuda" if CUDA else "cpu")
    batch = 64 if CUDA else 4
    loader = DataLoader(Photos(make_photos(), train_tf), batch_size=batch, shuffle=True, drop_last=True,
                        num_workers=14 if CUDA else 2, persistent_workers=True, pin_memory=CUDA)
    model = (models.resnet18(num_classes=CLASSES) if CUDA
             else models.squeezenet1_1(num_classes=CLASSES)).to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    step, start, running = 0, time.time(), True
    while running:
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=CUDA):
                loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.3f}")
            if time.time() - start > 14:
                running = False
                break
    if CUDA:
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
