# Click-through ranker, nightly retrain. Plain script on purpose: cron runs it as is.
import time
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

torch.manual_seed(0)
ROWS, COLUMNS, EPOCHS, BATCH_SIZE, LEARNING_RATE = 48_000, 40, 3, 8, 1e-3


class Clicks(Dataset):
    """The whole table in memory; a list of row numbers gives a whole batch in one gather."""

    def __init__(self):
        self.x = torch.randn(ROWS, COLUMNS)
        self.y = (self.x[:, :5].sum(1) + torch.randn(ROWS) > 0).float()

    def __len__(self):
        return ROWS

    def __getitem__(self, rows):
        return self.x[rows], self.y[rows]


clicks = Clicks()
batches = BatchSampler(RandomSampler(clicks), BATCH_SIZE, drop_last=True)
loader = DataLoader(clicks, sampler=batches, batch_size=None)

model = nn.Sequential(
    nn.Linear(COLUMNS, 128), nn.ReLU(),
    nn.Linear(128, 128), nn.ReLU(),
    nn.Linear(128, 64), nn.ReLU(),
    nn.Linear(64, 1), nn.Flatten(0),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(EPOCHS):
    tick = time.perf_counter()
    seen, loss_sum = 0, torch.zeros(())
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss_sum += loss.detach()
        seen += 1
    seconds = time.perf_counter() - tick
    print(f"epoch {epoch}: loss {loss_sum.item() / seen:.4f}, {ROWS / seconds:.0f} rows/s", flush=True)
