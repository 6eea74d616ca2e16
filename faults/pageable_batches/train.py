"""Large batches are copied from ordinary memory."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = True


class Batches(Dataset):
    def __init__(self):
        self.images = torch.randn(4, 256, 3, 224, 224)

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return self.images[index % 4]


def main():
    batches = Batches()
    batches.images.share_memory_()
    loader = DataLoader(batches, batch_size=None, num_workers=4, prefetch_factor=2, persistent_workers=True, pin_memory=False)
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 4), nn.ReLU(), nn.Conv2d(64, 128, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    model = model.cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    begin = time.monotonic()
    for images in loader:
        images = images.to("cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(images).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if time.monotonic() - begin > 13:
            break
    print("done", loss.item())


if __name__ == "__main__":
    main()
