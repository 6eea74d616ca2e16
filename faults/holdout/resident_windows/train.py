"""Price movement from windows of sixteen series, with a two-layer LSTM."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from windows import load_windows

BATCH_SIZE = 64
NUM_WORKERS = 0
HIDDEN_SIZE = 128
EPOCHS = 4


class Movement(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.lstm = nn.LSTM(channels, HIDDEN_SIZE, num_layers=2, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(HIDDEN_SIZE), nn.Linear(HIDDEN_SIZE, 1))

    def forward(self, windows):
        return self.head(self.lstm(windows)[0][:, -1]).squeeze(-1)


def run_epoch(model, loader, optimizer):
    total = torch.zeros(())
    for windows, target in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.smooth_l1_loss(model(windows), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


def main():
    torch.manual_seed(42)
    loader = DataLoader(load_windows(), batch_size=BATCH_SIZE, shuffle=True, num_workers=NUM_WORKERS)
    model = Movement()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    for epoch in range(EPOCHS):
        start = time.time()
        loss = run_epoch(model, loader, optimizer)
        print(f"epoch {epoch}: loss {loss:.5f} in {time.time() - start:.2f}s", flush=True)


if __name__ == "__main__":
    main()
