import os
import tempfile
import time
from dataclasses import dataclass, field

import torch
import torch.nn as nn


@dataclass
class Settings:
    features: int = 256
    width: int = 1536
    batch: int = 96
    save_every: int = 2
    seconds: float = field(default_factory=lambda: float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))


class YieldModel(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(s.features, s.width), nn.SiLU(),
            nn.Linear(s.width, s.width), nn.SiLU(),
            nn.Linear(s.width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Experiment:
    def __init__(self, settings, folder):
        torch.manual_seed(12)
        self.s = settings
        self.folder = folder
        self.x = torch.randn(20_000, settings.features)
        self.y = self.x[:, :8].sum(1).tanh()
        self.model = YieldModel(settings)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.step = 0

    def save(self):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}
        path = os.path.join(self.folder, "last.pt")
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)

    def train_step(self):
        rows = torch.randint(0, len(self.x), (self.s.batch,))
        loss = nn.functional.mse_loss(self.model(self.x[rows]), self.y[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        if self.step % self.s.save_every == 0:
            self.save()

    def run(self):
        for _ in range(4):
            self.train_step()
        first, start = self.step, time.perf_counter()
        while time.perf_counter() - start < self.s.seconds:
            self.train_step()
        print(f"{(self.step - first) / (time.perf_counter() - start):.3f} steps/s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Experiment(Settings(), folder).run()
