"""Forecast kiln temperature from the plant's text log."""
import datetime as dt
import json
import os
import random
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def plant_log(rows=20000):
    random.seed(4)
    now = dt.datetime(2025, 3, 1)
    temperature = 900.0
    log = []
    for _ in range(rows):
        now += dt.timedelta(seconds=random.randint(20, 90))
        temperature += random.uniform(-4, 4) - (temperature - 900) * 0.02
        log.append((now.strftime("%Y-%m-%d %H:%M:%S"), temperature))
    return log


class Windows(Dataset):
    def __init__(self, log, history=24):
        self.log = log
        self.history = history

    def __len__(self):
        return len(self.log) - self.history - 1

    def __getitem__(self, i):
        window = self.log[i : i + self.history + 1]
        times = [dt.datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S") for stamp, _ in window]
        hours = torch.tensor([t.hour / 24 + t.minute / 1440 for t in times[:-1]])
        gaps = torch.tensor([(b - a).total_seconds() / 60 for a, b in zip(times, times[1:])])
        values = torch.tensor([(v - 900) / 50 for _, v in window])
        return torch.stack([hours, gaps, values[:-1]], 1), values[-1]


class RunLog:
    def __init__(self, path):
        self.file = open(path, "w")

    def add(self, step, loss, parameters):
        record = {"step": step, "loss": loss}
        for i, p in enumerate(parameters):
            record[f"weight_{i}"] = torch.histc(p.detach(), 128).tolist()
            record[f"grad_{i}"] = torch.histc(p.grad, 128).tolist()
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def main():
    torch.manual_seed(0)
    seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    loader = DataLoader(Windows(plant_log()), batch_size=64, shuffle=True, drop_last=True)
    body = nn.GRU(3, 48, batch_first=True)
    head = nn.Linear(48, 1)
    parameters = [*body.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        log = RunLog(os.path.join(folder, "run.jsonl"))
        step, since = 0, None
        while True:
            for x, y in loader:
                prediction = head(body(x)[0][:, -1]).squeeze(1)
                loss = nn.functional.mse_loss(prediction, y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                log.add(step, loss.item(), parameters)
                step += 1
                if step == 5:
                    since = time.time()
                if since and time.time() - since > seconds:
                    print(f"{(step - 5) / (time.time() - since):.2f} steps per second")
                    return


if __name__ == "__main__":
    main()
