"""Depth from grey images. Collects the predictions of every step for the metrics of the epoch."""
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(1, width, 5, stride=4, padding=2), nn.ReLU(inplace=True))
        self.b = nn.Sequential(*[m for _ in range(6) for m in (nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True))])
        self.c = nn.ConvTranspose2d(width, 1, 4, stride=4)

    def forward(self, x):
        return self.c(self.b(self.a(x)))


class Metrics:
    """Keeps what was predicted and what was right, on the CPU so that it costs no device memory."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.predicted, self.actual, self.losses = [], [], []

    def update(self, predicted, actual, loss):
        self.predicted.append(predicted.detach().float().cpu().numpy())
        self.actual.append(actual.cpu().numpy())
        self.losses.append(loss.item())

    def summary(self):
        error = sum(float(abs(p[:, :, ::16, ::16] - a[:, :, ::16, ::16]).mean()) for p, a in zip(self.predicted, self.actual))
        return sum(self.losses) / len(self.losses), error / len(self.predicted)


class Trainer:
    def __init__(self, device, batch=96, side=256):
        torch.manual_seed(4)
        self.device, self.batch = device, batch
        self.images = torch.rand(10 * batch, 1, side, side, device=device)
        self.model = Encoder().to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.metrics = Metrics()

    def step(self, image):
        depth = 1 - nn.functional.avg_pool2d(image, 5, stride=1, padding=2)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            predicted = self.model(image.contiguous(memory_format=torch.channels_last))
            loss = nn.functional.l1_loss(predicted.float(), depth)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.metrics.update(predicted, depth, loss)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.metrics.reset()
            for rows in torch.randperm(len(self.images), device=self.device).split(self.batch):
                self.step(self.images[rows])
            loss, error = self.metrics.summary()
            print(f"epoch {epoch:02d}  loss {loss:.4f}  abs error {error:.4f}", flush=True)


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    Trainer(torch.device("cuda")).fit(epochs=65)
