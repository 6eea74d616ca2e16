"""Vision transformer from timm on beetle photos that fit in GPU memory as bytes."""
import argparse
import os
import time

import timm
import torch
import torch.nn.functional as F

CUDA = torch.cuda.is_available()


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="vit_base_patch16_224" if CUDA else "vit_tiny_patch16_224")
    p.add_argument("--image-size", type=int, default=224 if CUDA else 32)
    p.add_argument("--batch-size", type=int, default=192 if CUDA else 2)
    p.add_argument("--images", type=int, default=6144 if CUDA else 32)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--seconds", type=float, default=float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))
    return p.parse_args()


class Photos:
    def __init__(self, n, size, device):
        g = torch.Generator(device).manual_seed(0)
        self.pixels = torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, device=device, generator=g)
        self.species = torch.randint(0, 100, (n,), device=device, generator=g)

    def epoch(self, batch_size):
        order = torch.randperm(len(self.pixels), device=self.pixels.device)
        for rows in order.split(batch_size):
            x = self.pixels[rows].to(torch.bfloat16).sub_(127).div_(64)
            flip = (torch.rand(len(rows), 1, 1, 1, device=x.device) < 0.5)
            yield torch.where(flip, x.flip(-1), x), self.species[rows]


def main():
    args = get_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if CUDA else "cpu"
    photos = Photos(args.images, args.image_size, device)
    model = timm.create_model(args.model, pretrained=False, num_classes=100, img_size=args.image_size).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05, fused=CUDA)
    steps, start = 0, None
    while True:
        for x, y in photos.epoch(args.batch_size):
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps == 8:
                start = time.time()
            if start and time.time() - start > args.seconds:
                print(f"{(steps - 8) / (time.time() - start):.2f} steps/s, loss {loss.item():.3f}")
                return


if __name__ == "__main__":
    main()
