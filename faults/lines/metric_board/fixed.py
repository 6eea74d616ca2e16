import json
import os
import tempfile
import threading
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class MetricBoard:
    """Shares the latest metrics with a reporter thread that refreshes a status file."""

    def __init__(self, path, refresh=0.05):
        self.path, self.refresh = path, refresh
        self.lock = threading.Lock()
        self.latest = {}
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._report, daemon=True)
        self.thread.start()

    def _report(self):
        while not self.stopped.is_set():
            with self.lock:
                snapshot = dict(self.latest)
            self._write(snapshot)
            time.sleep(self.refresh + 0.002)

    def _write(self, snapshot):
        with open(self.path + ".tmp", "w") as f:
            json.dump(snapshot, f)
        os.replace(self.path + ".tmp", self.path)

    def put(self, **values):
        with self.lock:
            self.latest.update(values)

    def close(self):
        self.stopped.set()
        self.thread.join()


class Siamese(nn.Module):
    def __init__(self, n_in=160, hidden=512, dim=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, dim)
        )

    def forward(self, a, b):
        return F.normalize(self.net(a), dim=1), F.normalize(self.net(b), dim=1)


def make_views(n=20000, n_in=160):
    g = torch.Generator().manual_seed(23)
    latent = torch.randn(n, 24, generator=g)
    mix = torch.randn(24, n_in, generator=g)
    clean = torch.tanh(latent @ mix / 3)
    return [clean + 0.5 * torch.randn(n, n_in, generator=g) for _ in range(2)]


def info_nce(za, zb, temperature=0.1):
    logits = za @ zb.t() / temperature
    target = torch.arange(len(za), device=za.device)
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


torch.manual_seed(0)
view_a, view_b = (v.to(device) for v in make_views())
model = Siamese().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batch = 4096 if device == "cuda" else 192
board = MetricBoard(os.path.join(tempfile.mkdtemp(), "status.json"))
step = 0
t0 = time.time()
while time.time() - t0 < 14:
    idx = torch.randint(0, len(view_a), (batch,), device=device)
    loss = info_nce(*model(view_a[idx], view_b[idx]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    board.put(step=step, seconds=time.time() - t0)
    if step % 50 == 0:
        value = loss.item()
        board.put(loss=value)
        print(f"step {step} info-nce {value:.4f}")
if device == "cuda":
    torch.cuda.synchronize()
elapsed = time.time() - t0
board.close()
print(f"{step / elapsed:.2f} steps/s, {step * batch / elapsed:.0f} samples/s")
