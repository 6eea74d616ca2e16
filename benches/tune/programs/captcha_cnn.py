"""Sliding captchas of 320×160. As its team began: 28 workers, batch 256, mixed precision asked for in a way that the code never
reads, losses read at every step. On a CPU: a batch of 16 and small layers."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
batch, widths = (256, [3, 32, 64, 128, 128]) if device.type == "cuda" else (16, [3, 4, 8, 8, 8])
config = {"train": {"amp": True, "num_workers": 28, "batch_size": batch}}
torch.manual_seed(0)


class Captchas(Dataset):
    def __init__(self):
        self.pixels = np.random.default_rng(0).integers(0, 255, (256, 3, 160, 320), dtype=np.uint8)

    def __len__(self):
        return 40_000

    def __getitem__(self, index):
        picture = torch.from_numpy(self.pixels[index % 256]).float() / 255
        return picture, torch.tensor([index % 320 / 320, index % 160 / 160])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = []
        for a, b in zip(widths, widths[1:]):
            blocks += [nn.Conv2d(a, b, 3, stride=2, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(widths[-1], 2)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


def main():
    use_amp = config["train"].get("amp", "none") == "bf16"
    loader = DataLoader(Captchas(), batch_size=batch, shuffle=True, num_workers=config["train"]["num_workers"], pin_memory=device.type == "cuda")
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(1000):
        history = []
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.autocast(device.type, torch.bfloat16, enabled=use_amp):
                loss = nn.functional.smooth_l1_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        print("epoch", epoch, history[-1], flush=True)


if __name__ == "__main__":
    main()
