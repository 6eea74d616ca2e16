"""License plate characters. Plates are kept compressed and decoded again each time they are asked for."""
import random
import zlib
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CHARS, SLOTS = 36, 7


@dataclass
class Config:
    plates: int = 2560
    height: int = 64
    width: int = 192
    batch_size: int = 64
    epochs: int = 4
    workers: int = 1
    lr: float = 2e-3
    seed: int = 21


class PlateFiles(Dataset):
    def __init__(self, cfg):
        self.cfg = cfg
        g = torch.Generator().manual_seed(cfg.seed)
        glyphs = torch.randint(0, 256, (CHARS, 12, 6), generator=g, dtype=torch.uint8)
        self.files = []
        for _ in range(cfg.plates):
            text = torch.randint(0, CHARS, (SLOTS,), generator=g)
            small = torch.cat([glyphs[c] for c in text], dim=1)[None, None].float()
            image = F.interpolate(small, (cfg.height, cfg.width)).expand(1, 3, -1, -1)[0]
            self.files.append((zlib.compress(image.byte().contiguous().numpy().tobytes(), 6), text))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        packed, text = self.files[i]
        cfg = self.cfg
        image = torch.frombuffer(bytearray(zlib.decompress(packed)), dtype=torch.uint8).view(3, cfg.height, cfg.width)
        image = image.float() / 255
        angle = random.uniform(-0.08, 0.08)
        theta = torch.tensor([[[1.0, angle, 0.0], [-angle, 1.0, 0.0]]])
        grid = F.affine_grid(theta, (1, 3, cfg.height, cfg.width), align_corners=False)
        image = F.grid_sample(image[None], grid, align_corners=False)
        image = F.avg_pool2d(image, 5, stride=1, padding=2) * random.uniform(0.7, 1.3)
        return F.interpolate(image, (32, 96), mode='area')[0], text


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(),
            nn.Conv2d(256, 512, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(512, 512, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d((4, 12)), nn.Flatten(),
        )
        self.head = nn.Linear(512 * 4 * 12, SLOTS * CHARS)

    def forward(self, x):
        return self.head(self.body(x)).view(-1, CHARS, SLOTS)


def main():
    cfg = Config()
    random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision('high')
    loader = DataLoader(PlateFiles(cfg), batch_size=cfg.batch_size, shuffle=True, num_workers=cfg.workers,
                        pin_memory=True, persistent_workers=True, prefetch_factor=4)
    model = Reader().to('cuda', memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    for epoch in range(cfg.epochs):
        for images, text in loader:
            images, text = images.to('cuda', non_blocking=True), text.to('cuda', non_blocking=True)
            with torch.autocast('cuda', dtype=torch.bfloat16):
                loss = F.cross_entropy(model(images.contiguous(memory_format=torch.channels_last)), text)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(f'epoch {epoch + 1}/{cfg.epochs} loss={loss.item():.3f}', flush=True)


if __name__ == '__main__':
    main()
