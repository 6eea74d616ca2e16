import logging
import time

import torch
from torch.utils.data import DataLoader, Dataset

from net import HEIGHT, WIDTH


class Puzzles(Dataset):
    """Whole batches of puzzles out of a bank of backgrounds; a bright square is the gap, a dark one the slider."""

    def __init__(self, batches, batch_size):
        self.batches, self.batch_size = batches, batch_size
        self.bank = torch.randint(0, 255, (64, 3, HEIGHT, WIDTH), dtype=torch.uint8)

    def __len__(self):
        return self.batches

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        images = self.bank[torch.randint(64, (self.batch_size,), generator=generator)]
        columns = torch.randint(WIDTH - 40, (self.batch_size, 2), generator=generator)
        for image, (gap, slider) in zip(images, columns.tolist()):
            image[:, 60:100, gap : gap + 40] = 230
            image[:, 60:100, slider : slider + 40] = 20
        return images, columns.float() / WIDTH


class TrainingEngine:
    def __init__(self, model, config, device):
        self.config, self.device = config, device
        self.model = model.to(device)
        train = config["train"]
        self.use_amp = train.get("amp", "none") == "bf16"
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=config["optimizer"]["lr"],
            weight_decay=config["optimizer"]["weight_decay"],
            fused=True,
        )
        self.loader = DataLoader(
            Puzzles(train["steps_per_epoch"], train["batch_size"]),
            batch_size=None,
            shuffle=True,
            num_workers=train["num_workers"],
            pin_memory=train["pin_memory"],
            prefetch_factor=train["prefetch_factor"],
            persistent_workers=True,
        )
        logging.info("mixed precision: %s", train["amp"])

    def train_epoch(self):
        self.model.train()
        total = torch.zeros((), device=self.device)
        for images, target in self.loader:
            images = images.to(self.device, non_blocking=self.config["train"]["non_blocking"])
            target = target.to(self.device, non_blocking=self.config["train"]["non_blocking"])
            images = images.float().div_(127.5).sub_(1)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.use_amp):
                located = self.model(images)
            loss = torch.nn.functional.smooth_l1_loss(located.float(), target)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return total.item() / len(self.loader)

    def fit(self):
        for epoch in range(self.config["train"]["epochs"]):
            began = time.perf_counter()
            loss = self.train_epoch()
            seconds = time.perf_counter() - began
            rate = len(self.loader) * self.config["train"]["batch_size"] / seconds
            logging.info("epoch %d loss %.4f %.0f samples/s", epoch, loss, rate)
