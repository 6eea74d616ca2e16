"""Online anomaly scoring: an autoencoder trained on batches from a sampler thread."""
import queue
import threading
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 4096 if device == "cuda" else 256


class BatchSampler(threading.Thread):
    """Serves batches of the telemetry table on request."""

    def __init__(self, table, batch_size):
        super().__init__(daemon=True)
        self.table, self.batch_size = table, batch_size
        self.requests, self.results = queue.Queue(), queue.Queue(maxsize=4)

    def run(self):
        while True:
            ticket = self.requests.get()
            if ticket is None:
                return
            idx = torch.randint(0, len(self.table), (self.batch_size,), device=self.table.device)
            self.results.put((ticket, self.table[idx]))

    def next_batch(self, ticket):
        self.requests.put(ticket)
        while True:
            try:
                return self.results.get_nowait()
            except queue.Empty:
                time.sleep(0.03)

    def close(self):
        self.requests.put(None)
        self.join()


class Autoencoder(nn.Module):
    def __init__(self, n_in=128, hidden=384, code=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(n_in, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, code)
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, n_in)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def telemetry(n=50000, n_in=128):
    g = torch.Generator().manual_seed(19)
    factors = torch.randn(n, 12, generator=g)
    return torch.tanh(factors @ torch.randn(12, n_in, generator=g)) + 0.05 * torch.randn(n, n_in, generator=g)


def main(seconds=14):
    torch.manual_seed(0)
    sampler = BatchSampler(telemetry().to(device), BATCH)
    sampler.start()
    model = Autoencoder().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, t0 = 0, time.time()
    while time.time() - t0 < seconds:
        _, x = sampler.next_batch(step)
        loss = F.mse_loss(model(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step} reconstruction {loss.item():.5f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    sampler.close()
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.0f} samples/s")


if __name__ == "__main__":
    main()
