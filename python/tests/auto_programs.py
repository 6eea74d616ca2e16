"""Programs for `flatout run --auto`: `python auto_programs.py NAME STEPS FILE`. Each prints its losses and its batches' sums, as bits, to
the file. Items of `sleepy` data wait: workers help on any machine, whatever else it does."""

import multiprocessing
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, TensorDataset

NAME, STEPS, LOG = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "w")
ROWS, BATCH, WAIT = 640, 8, 0.002


class Sleepy(Dataset):
    def __init__(self):
        self.x = torch.rand(ROWS, 8, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        time.sleep(WAIT)
        return self.x[index], self.x[index].sum().reshape(1)


class Noisy(Sleepy):
    def __getitem__(self, index):
        time.sleep(WAIT)
        return self.x[index] + torch.rand(8), torch.ones(1)


class Asking(Sleepy):
    def __getitem__(self, index):
        time.sleep(WAIT)
        worker = torch.utils.data.get_worker_info()
        return self.x[index] + (worker.id + 1 if worker else 0), torch.ones(1)


class Fatal(Sleepy):
    """Kills the whole program when it is read in a worker."""

    def __getitem__(self, index):
        time.sleep(WAIT)
        return self.x[index], kill_in_worker()


def kill_in_worker():
    import os
    import signal

    if os.environ.get("MAIN") != str(os.stat("/proc/self").st_ino):
        os.kill(int(os.environ["PROGRAM"]), signal.SIGKILL)
    return torch.ones(1)


class Streamed(IterableDataset):
    def __iter__(self):
        for row in Sleepy():
            yield row


class OwnLoader(DataLoader):
    def __iter__(self):
        torch.manual_seed(5)
        return super().__iter__()


class OwnSampler(Sampler):
    def __iter__(self):
        torch.manual_seed(6)
        return iter(torch.randperm(ROWS).tolist())

    def __len__(self):
        return ROWS


def columns():
    made = torch.Generator().manual_seed(0)
    return TensorDataset(*(torch.rand(40_000, 1, generator=made) for _ in range(9)))


LOADERS = {
    "sleepy": lambda: DataLoader(Sleepy(), BATCH, shuffle=True),
    "sleepy_with_a_worker": lambda: DataLoader(Sleepy(), BATCH, shuffle=True, num_workers=1),
    "columns": lambda: DataLoader(columns(), 64, shuffle=True),
    "noisy": lambda: DataLoader(Noisy(), BATCH, shuffle=True),
    "noisy_with_a_worker": lambda: DataLoader(Noisy(), BATCH, shuffle=True, num_workers=1),
    "asking": lambda: DataLoader(Asking(), BATCH, shuffle=True, num_workers=1),
    "streamed": lambda: DataLoader(Streamed(), BATCH),
    "own_loader": lambda: OwnLoader(Sleepy(), BATCH, shuffle=True),
    "own_sampler": lambda: DataLoader(Sleepy(), BATCH, sampler=OwnSampler()),
    "own_init": lambda: DataLoader(Sleepy(), BATCH, shuffle=True, num_workers=1, worker_init_fn=lambda worker: torch.manual_seed(worker)),
    "counting": lambda: DataLoader(Sleepy(), BATCH, shuffle=True),
    "fatal": lambda: DataLoader(Fatal(), BATCH, shuffle=True),
}


def note(loss, *values):
    print(*(value.item().hex() for value in (loss, *values)), file=LOG, flush=True)


def main():
    torch.manual_seed(0)
    loader = LOADERS[NAME]()
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    step = 0
    while step < STEPS:
        for batch in loader:
            x, y = batch if len(batch) == 2 else (torch.cat(batch[:8], 1), batch[8])
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            note(loss, x.sum(), torch.rand(1), *([torch.tensor(float(len(multiprocessing.active_children())))] if NAME == "counting" else []))
            step += 1
            if step >= STEPS:
                break
    print("done", flush=True)


if __name__ == "__main__":
    main()
