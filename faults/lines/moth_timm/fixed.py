"""Fine-grained moth classification with a timm backbone."""
import os
import time

import timm
import torch
from torch import nn

CUDA = torch.cuda.is_available()
CONFIG = {
    "model": "resnet26d" if CUDA else "resnet10t",
    "classes": 200,
    "images": 8192 if CUDA else 64,
    "size": 160 if CUDA else 32,
    "batch_size": 256 if CUDA else 16,
    "lr": 1e-4,
    "seconds": float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)),
}


class MothTraining:
    def __init__(self, config):
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = True
        self.c = config
        self.device = "cuda" if CUDA else "cpu"
        shape = (config["images"], 3, config["size"], config["size"])
        self.images = torch.randint(0, 256, shape, dtype=torch.uint8, device=self.device)
        self.labels = torch.randint(0, config["classes"], (config["images"],), device=self.device)
        model = timm.create_model(config["model"], pretrained=False, num_classes=config["classes"])
        self.model = model.to(self.device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config["lr"], fused=CUDA)

    def batches(self):
        while True:
            order = torch.randperm(self.c["images"], device=self.device)
            for rows in order.split(self.c["batch_size"]):
                x = self.images[rows].to(memory_format=torch.channels_last)
                yield (x.float() - 120) / 60, self.labels[rows]

    def step(self, x, y):
        with torch.autocast(self.device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def fit(self):
        start, seen, done = None, 0, 0
        for i, (x, y) in enumerate(self.batches()):
            loss = self.step(x, y)
            if i == 10:
                start = time.time()
            elif i > 10:
                seen += len(y)
                done += 1
                if time.time() - start > self.c["seconds"]:
                    break
        spent = time.time() - start
        print(f"{done / spent:.2f} steps/s, {seen / spent:.1f} images/s, loss {loss.item():.3f}")


if __name__ == "__main__":
    MothTraining(CONFIG).fit()
