"""Lightning: residual CNN on synthetic 32px images."""
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CUDA = torch.cuda.is_available()
CLASSES = 10


def make_images(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    proto = torch.randn(CLASSES, 3, 32, 32, generator=g)
    x = proto[y] + torch.randn(n, 3, 32, 32, generator=g)
    return TensorDataset(x, y)


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                               nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o))
        self.skip = nn.Identity() if stride == 1 and i == o else nn.Conv2d(i, o, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.a(x) + self.skip(x))


class ResNet(L.LightningModule):
    def __init__(self, w):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, w, 3, 1, 1), Block(w, w, 1), Block(w, 2 * w, 2), Block(2 * w, 4 * w, 2),
                                 nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, CLASSES))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        if CUDA:
            x = x.to(memory_format=torch.channels_last)
        loss = nn.functional.cross_entropy(self(x), y)
        if batch_idx % 50 == 0:
            self.log("train_loss", loss.detach())
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)


class Images(L.LightningDataModule):
    def __init__(self, batch, n):
        super().__init__()
        self.batch, self.n = batch, n

    def setup(self, stage):
        self.train, self.val = make_images(self.n), make_images(256, 1)

    def loader(self, data, shuffle):
        return DataLoader(data, batch_size=self.batch, shuffle=shuffle, drop_last=shuffle, pin_memory=CUDA,
                          num_workers=8 if CUDA else 0, persistent_workers=CUDA)

    def train_dataloader(self):
        return self.loader(self.train, True)

    def val_dataloader(self):
        return self.loader(self.val, False)


def main():
    L.seed_everything(0)
    torch.set_float32_matmul_precision("high")
    w, batch, n = (128, 512, 30000) if CUDA else (16, 32, 8000)
    model = ResNet(w)
    if CUDA:
        model = model.to(memory_format=torch.channels_last)
    trainer = L.Trainer(max_epochs=-1, max_time={"seconds": 14}, accelerator="auto", devices=1,
                        precision="bf16-mixed" if CUDA else "32-true", benchmark=CUDA, num_sanity_val_steps=0,
                        logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False)
    start = time.time()
    trainer.fit(model, datamodule=Images(batch, n))
    print(f"{trainer.global_step} steps, {trainer.global_step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
