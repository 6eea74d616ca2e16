"""U-Net for cloud masks; tiles are kept on the GPU, validated once in a while."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
TILES, SIZE, BATCH, WIDTH = (1024, 256, 32, 64) if CUDA else (16, 32, 2, 8)


class Double(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(
            nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.down = nn.ModuleList([Double(4, w), Double(w, 2 * w), Double(2 * w, 4 * w)])
        self.middle = Double(4 * w, 8 * w)
        self.lift = nn.ModuleList([nn.ConvTranspose2d(8 * w, 4 * w, 2, 2), nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), nn.ConvTranspose2d(2 * w, w, 2, 2)])
        self.up = nn.ModuleList([Double(8 * w, 4 * w), Double(4 * w, 2 * w), Double(2 * w, w)])
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        skips = []
        for d in self.down:
            x = d(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for lift, up in zip(self.lift, self.up):
            x = up(torch.cat([lift(x), skips.pop()], 1))
        return self.out(x)


class Task:
    def __init__(self):
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
        self.tiles = torch.randint(0, 256, (TILES, 4, SIZE, SIZE), dtype=torch.uint8, device=DEVICE)
        self.masks = (self.tiles[:, :1] > 180).to(torch.uint8)
        self.model = UNet(WIDTH).to(DEVICE, memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=CUDA)
        self.held_out = BATCH * 2

    def batch(self, rows):
        x = self.tiles[rows].to(memory_format=torch.channels_last)
        return x.to(torch.bfloat16) / 255, self.masks[rows].float()

    def loss(self, rows):
        x, y = self.batch(rows)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            logits = self.model(x)
        return F.binary_cross_entropy_with_logits(logits.float(), y)

    def step(self):
        loss = self.loss(torch.randint(self.held_out, TILES, (BATCH,), device=DEVICE))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses = [self.loss(torch.arange(i, i + BATCH, device=DEVICE)) for i in range(0, self.held_out, BATCH)]
        self.model.train()
        return torch.stack(losses).mean().item()


def main():
    seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    task = Task()
    for _ in range(8):
        task.step()
    steps, start = 0, time.time()
    while time.time() - start < seconds:
        task.step()
        steps += 1
        if steps % 120 == 0:
            print(f"step {steps}: validation {task.validate():.4f}")
    print(f"{steps / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
