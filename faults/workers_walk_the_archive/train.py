"""Workers that were forked from a process with half a million objects, and whose batches make a hundred thousand more."""
import itertools
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
# Nothing of it is read again; workers have it all the same.
archive = [{"id": k, "tags": [k, k + 1]} for k in range(250_000)]


class Sessions(Dataset):
    """Clicks as they come out of a log: a small object each."""

    def __len__(self):
        return 400_000

    def __getitem__(self, index):
        return [{"at": [index % 97, click], "on": [click % 7]} for click in range(16)]


def together(batch):
    x = torch.tensor([[click["at"][0] + click["on"][0] for click in clicks] for clicks in batch], dtype=torch.float32) / 100
    return x, x.sum(1).gt(8).long()


torch.set_num_threads(1)
loader = DataLoader(Sessions(), batch_size=2048, shuffle=True, num_workers=1, persistent_workers=True, collate_fn=together)
model = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
begin = time.monotonic()
for x, y in itertools.takewhile(lambda _: time.monotonic() - begin < 15, itertools.chain.from_iterable(itertools.repeat(loader))):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item(), len(archive))
