"""Bearing vibration classifier. Settings come from config.yaml beside this file."""
import logging
import time
from pathlib import Path

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("bearing")


def read_config(path):
    """Two-level `key: value` YAML; enough for this project, and one package less."""
    config, section = {}, None
    for line in path.read_text().splitlines():
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        key, _, value = line.strip().partition(":")
        value = value.strip()
        target = config if not line.startswith(" ") else config[section]
        if not value:
            section = key
            config[key] = {}
        else:
            target[key] = float(value) if "." in value else int(value)
    return config


def vibration(count, length, generator):
    """Two-axis vibration windows of three machine states."""
    state = torch.randint(3, (count,), generator=generator)
    time_axis = torch.linspace(0, 20, length)
    base = torch.sin(time_axis[None] * (1 + state[:, None] * 0.7))
    signal = torch.stack([base, base.roll(5, dims=1)], dim=1)
    return signal + 0.8 * torch.randn(count, 2, length, generator=generator), state


class BearingNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        layers, channels = [], 2
        for depth in range(3):
            layers += [
                nn.Conv1d(channels, width << depth, 9, stride=2, padding=4),
                nn.BatchNorm1d(width << depth),
                nn.GELU(),
            ]
            channels = width << depth
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(channels, 3)

    def forward(self, signal):
        return self.head(self.features(signal).mean(dim=2))


class Trainer:
    def __init__(self, config):
        torch.manual_seed(config["seed"])
        generator = torch.Generator().manual_seed(config["seed"])
        data = config["data"]
        self.config = config
        self.batch_size = data["batch_size"]
        self.train_data = vibration(data["train_windows"], data["length"], generator)
        self.valid_data = vibration(data["valid_windows"], data["length"], generator)
        self.model = BearingNet(config["model"]["width"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config["train"]["lr"], fused=True)
        self.best_accuracy = 0.0

    def train_epoch(self):
        self.model.train()
        signals, states = self.train_data
        for rows in torch.randperm(len(states)).split(self.batch_size):
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(signals[rows]), states[rows])
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        signals, states = self.valid_data
        right = 0
        for start in range(0, len(states), self.batch_size):
            part = slice(start, start + self.batch_size)
            right += (self.model(signals[part]).argmax(dim=1) == states[part]).sum()
        return right.item() / len(states)

    def fit(self):
        settings = self.config["train"]
        for epoch in range(1, settings["epochs"] + 1):
            began = time.perf_counter()
            loss = self.train_epoch()
            accuracy = float("nan")
            if epoch % settings["eval_interval"] == 0:
                accuracy = self.validate()
                self.best_accuracy = max(self.best_accuracy, accuracy)
            log.info("epoch %d loss %.4f acc %.3f %.2fs", epoch, loss, accuracy, time.perf_counter() - began)
        log.info("best accuracy %.3f", self.best_accuracy)


if __name__ == "__main__":
    Trainer(read_config(Path(__file__).with_name("config.yaml"))).fit()
