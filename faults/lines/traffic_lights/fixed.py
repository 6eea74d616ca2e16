"""Queue lengths at crossings; simulator threads feed a shared buffer."""
import os
import random
import threading
import time
from collections import deque

import numpy as np
import torch
from torch import nn


class Buffer:
    def __init__(self, size=4000):
        self.lock = threading.Lock()
        self.rows = deque(maxlen=size)

    def sample(self, n):
        with self.lock:
            picked = random.sample(range(len(self.rows)), n)
            return [self.rows[i] for i in picked]


class Simulator(threading.Thread):
    def __init__(self, buffer, seed):
        super().__init__(daemon=True)
        self.buffer = buffer
        self.rng = np.random.default_rng(seed)
        self.running = True

    def episode(self):
        queue = self.rng.normal(size=64)
        rows = []
        for _ in range(20):
            arrivals = self.rng.poisson(2, size=64)
            after = np.maximum(queue + arrivals - 2, 0)
            rows.append((queue.astype(np.float32), after.astype(np.float32)))
            queue = after
            time.sleep(0.002)
        return rows

    def run(self):
        while self.running:
            rows = self.episode()
            with self.buffer.lock:
                self.buffer.rows.extend(rows)
            time.sleep(0.003)


def main():
    random.seed(0)
    torch.manual_seed(0)
    seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    buffer = Buffer()
    simulators = [Simulator(buffer, seed) for seed in range(1)]
    for s in simulators:
        s.start()
    while len(buffer.rows) < 600:
        time.sleep(0.05)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    count, start = 0, None
    while True:
        rows = buffer.sample(512)
        x = torch.from_numpy(np.stack([a for a, _ in rows]))
        y = torch.from_numpy(np.stack([b for _, b in rows]))
        loss = nn.functional.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count += 1
        if count == 5:
            start = time.time()
        if start and time.time() - start > seconds:
            break
    rate = (count - 5) / (time.time() - start)
    for s in simulators:
        s.running = False
    for s in simulators:
        s.join()
    print(f"{rate:.2f} steps/s")


if __name__ == "__main__":
    main()
