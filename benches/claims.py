"""Measures what the five documents behind flatout claim, one setting against another, with plain PyTorch.

    python benches/claims.py                     everything, on the GPU when there is one
    python benches/claims.py lstm captcha        some works: lstm mlp cnn captcha
    python benches/claims.py --json claims.json

The works have the sizes the documents name (on the CPU a quarter of the width and smaller batches, so that an answer comes in
minutes); the data are made up and lie in memory. A row is one setting: samples a second over `--seconds`, after a warm-up.
Utilisation, power and memory are NVML's; the first second of them is left out, since NVML looks back.
"""

import argparse
import ctypes
import gc
import json
import os
import statistics
import sys
import threading
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
SMALLER = 1 if CUDA else 4
ROWS = []
OPTIONS = None


class Rates(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Watch(threading.Thread):
    """Reads NVML ten times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.utilisation, self.watts, self.used = [], [], 0
        self.library = None
        if CUDA:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            self.library.nvmlInit_v2()
            self.handle = ctypes.c_void_p()
            self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle))

    def run(self):
        began = time.monotonic()
        while self.library and not self.ended.wait(0.1):
            rates, power, memory = Rates(), ctypes.c_uint(), Memory()
            self.library.nvmlDeviceGetUtilizationRates(self.handle, ctypes.byref(rates))
            self.library.nvmlDeviceGetPowerUsage(self.handle, ctypes.byref(power))
            self.library.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(memory))
            self.used = max(self.used, memory.used)
            if time.monotonic() - began > 1:
                self.utilisation.append(rates.gpu)
                self.watts.append(power.value / 1000)


class Stocks(Dataset):
    def __init__(self, samples, stocks=200, days=1000, features=20, window=60):
        self.x = np.random.default_rng(0).standard_normal((stocks, days, features), dtype=np.float32)
        self.window, self.windows, self.samples = window, days - window, samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        stock, day = divmod(index * 7919 % (len(self.x) * self.windows), self.windows)
        x = self.x[stock, day : day + self.window]
        return torch.from_numpy(x), stock, torch.tensor(float(self.x[stock, day + self.window, 0]))


class Pictures(Dataset):
    def __init__(self, samples):
        self.x = np.random.default_rng(0).integers(0, 255, (2000, 128, 128), dtype=np.uint8)
        self.samples = samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        x = torch.from_numpy(self.x[index % len(self.x)]).float().div_(255)[None]
        return (x.flip(-1) if index & 1 else x), 0, torch.zeros(())


class Table(Dataset):
    def __init__(self, samples):
        self.x, self.y, self.samples = torch.randn(100_000, 128), torch.randn(100_000), samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        return self.x[index % len(self.x)], 0, self.y[index % len(self.y)]


class Lstm(nn.Module):
    def __init__(self, hidden=256 // SMALLER, layers=3, stocks=5000, embedding=64):
        super().__init__()
        self.embedding = nn.Embedding(stocks, embedding)
        self.lstm = nn.LSTM(20 + embedding, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, stock):
        stock = self.embedding(stock)[:, None].expand(-1, x.shape[1], -1)
        return self.head(self.lstm(torch.cat([x, stock], 2))[0][:, -1])[:, 0]


class Mlp(nn.Module):
    def __init__(self, width=1024 // SMALLER):
        super().__init__()
        hidden = sum([[nn.Linear(width, width), nn.ReLU()] for _ in range(3)], [])
        self.layers = nn.Sequential(nn.Linear(128, width), nn.ReLU(), *hidden, nn.Linear(width, 1))

    def forward(self, x, _):
        return self.layers(x)[:, 0]


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [1] + [width // SMALLER for width in (32, 64, 128, 256)]
        blocks = [
            nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
            for before, after in zip(widths, widths[1:])
        ]
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(widths[-1], 1)

    def forward(self, x, _):
        return self.head(self.blocks(x).mean((2, 3)))[:, 0]


class Captcha(nn.Module):
    """A small convolution net for pictures of 320×160 with 3.7 million parameters; the document says 3.5 of its own."""

    def __init__(self):
        super().__init__()
        layers, before = [], 3
        for width, repeats in ((16, 1), (32, 2), (64, 2), (128, 3), (256, 6)):
            width //= SMALLER
            for repeat in range(repeats):
                stride = 2 if repeat == 0 else 1
                convolution = nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False)
                layers += [convolution, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                before = width
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(before, 4)

    def forward(self, x, _):
        return self.head(self.layers(x).mean((2, 3)))[:, 0]


def precision(name):
    """fp32: nothing on; tf32: products in TF32; bf16: autocast besides."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = name != "fp32"
    return name == "bf16"


def trainer(model, autocast, fused=None, set_to_none=True, compiled=None):
    optimizer = torch.optim.AdamW(model.parameters(), **({} if fused is None else {"fused": fused}))
    run = torch.compile(model, mode=compiled) if compiled else model

    def step(x, key, y):
        optimizer.zero_grad(set_to_none=set_to_none)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
            loss = nn.functional.mse_loss(run(x, key).float(), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def synchronize():
    if CUDA:
        torch.cuda.synchronize()


def children_mib():
    """What the loader's workers hold for themselves."""
    total = 0
    for line in os.popen(f"ps -o pid= --ppid {os.getpid()}").read().split():
        try:
            for entry in open(f"/proc/{line}/smaps_rollup", encoding="ascii"):
                if entry.startswith(("Private_Clean", "Private_Dirty")):
                    total += int(entry.split()[1])
        except OSError:
            pass
    return round(total / 1024)


def measure(work, setting, batches, step, batch, read_each=False, seconds=None, warm=8):
    seconds = seconds or OPTIONS.seconds
    if CUDA:
        torch.cuda.reset_peak_memory_stats()
    batches = iter(batches)
    for _ in range(warm):
        loss = step(*next(batches))
    loss.item()
    watch = Watch()
    watch.start()
    steps, wait, began = 0, 0.0, time.perf_counter()
    now = began
    while now - began < seconds:
        one = next(batches)
        wait += time.perf_counter() - now
        loss = step(*one)
        steps += 1
        if read_each:
            loss.item()
        elif steps % 50 == 0:
            synchronize()
        now = time.perf_counter()
    synchronize()
    elapsed = time.perf_counter() - began
    workers = children_mib()
    watch.ended.set()
    watch.join()
    row = {
        "work": work,
        "setting": setting,
        "samples_s": round(steps * batch / elapsed, 1),
        "step_ms": round(elapsed / steps * 1e3, 3),
        "wait_ms": round(wait / steps * 1e3, 3),
    }
    if watch.utilisation:
        row["utilisation"] = round(statistics.mean(watch.utilisation), 1)
        row["utilisation_std"] = round(statistics.pstdev(watch.utilisation), 1)
        row["watts"] = round(statistics.mean(watch.watts))
        row["device_mib"] = round(watch.used / 2**20)
        row["tensors_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
    if workers:
        row["workers_mib"] = workers
    show(row)


def show(row):
    ROWS.append(row)
    extra = ""
    if "utilisation" in row:
        extra = f"  {row['utilisation']:5.1f}±{row['utilisation_std']:4.1f}%  {row['watts']:4d} W  {row['tensors_mib']:6d} MiB"
    if "workers_mib" in row:
        extra += f"  workers {row['workers_mib']} MiB"
    print(
        f"{row['work']:8s} {row['setting']:52s} {row['samples_s']:12.0f}/s {row['step_ms']:9.3f} ms"
        f" wait {row['wait_ms']:8.3f} ms{extra}",
        flush=True,
    )


def from_loader(work, setting, data, model, batch, workers, amp="fp32", pin=True, persistent=True, prefetch=2, evaluate=None, **more):
    """`evaluate`: every how many epochs a fifth as many batches are run without learning."""
    read_each = more.pop("read_each", False)
    torch.manual_seed(0)
    model = model().to(DEVICE)
    step = trainer(model, precision(amp), **more)
    loader = DataLoader(
        data,
        batch,
        shuffle=True,
        num_workers=workers,
        pin_memory=pin and CUDA,
        persistent_workers=persistent and workers > 0,
        prefetch_factor=prefetch if workers else None,
        drop_last=True,
    )

    def moved(x, key, y):
        return tuple(part.to(DEVICE, non_blocking=pin) for part in (x, key, y))

    def batches():
        epoch = 0
        while True:
            for one in loader:
                yield moved(*one)
            epoch += 1
            if evaluate and epoch % evaluate == 0:
                with torch.no_grad():
                    for index, (x, key, y) in enumerate(loader):
                        model(*moved(x, key, y)[:2]).cpu()
                        if index >= len(loader) // 5:
                            break

    measure(work, setting, batches(), step, batch, read_each)
    del loader, model, step
    gc.collect()


def resident(work, setting, model, batch, make, amp="fp32", channels_last=False, read_each=False, **more):
    """The data are on the device already: what is left is the step."""
    torch.manual_seed(0)
    try:
        model = model().to(DEVICE)
        x, key, y = make(batch)
        if channels_last:
            model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
        step = trainer(model, precision(amp), **more)

        def batches():
            while True:
                yield x, key, y

        measure(work, setting, batches(), step, batch, read_each, seconds=OPTIONS.seconds * 0.7)
    except Exception as error:  # one setting that fails does not hide the others
        print(f"{work:8s} {setting:52s} failed: {str(error)[:100]}", flush=True)
    gc.collect()
    if CUDA:
        torch.cuda.empty_cache()


def stocks_batch(batch):
    return (
        torch.randn(batch, 60, 20, device=DEVICE),
        torch.randint(0, 5000, (batch,), device=DEVICE),
        torch.randn(batch, device=DEVICE),
    )


def table_batch(batch):
    return torch.randn(batch, 128, device=DEVICE), 0, torch.randn(batch, device=DEVICE)


def captcha_batch(batch):
    return torch.randn(batch, 3, 160, 320, device=DEVICE), 0, torch.randn(batch, device=DEVICE)


def lstm():
    # The documents' batch sizes on a card, an eighth of them on the CPU.
    size = (lambda batch: batch) if CUDA else (lambda batch: max(batch // 8, 8))
    data = Stocks(60_000 if CUDA else 3_000)
    case = lambda *given, **more: from_loader("lstm", *given, **more)
    case("original: 4 workers, batch 64, fp32, loss read each step", data, Lstm, size(64), 4, pin=False, read_each=True)
    case("first: 40 workers, batch 256, bf16", data, Lstm, size(256), 40, "bf16")
    case("final: 8 workers, batch 512, bf16, not persistent", data, Lstm, size(512), 8, "bf16", persistent=False)
    case("8 workers, batch 512, bf16, persistent", data, Lstm, size(512), 8, "bf16")
    case("8 workers, batch 512, bf16, persistent, not pinned", data, Lstm, size(512), 8, "bf16", pin=False)
    for workers in (2, 4, 16, 40):
        case(f"{workers} workers, batch 512, bf16, persistent", data, Lstm, size(512), workers, "bf16")
    case("8 workers, batch 256, bf16, persistent", data, Lstm, size(256), 8, "bf16")
    for amp in ("fp32", "tf32", "bf16"):
        resident("lstm", f"resident, batch 512, {amp}", Lstm, size(512), stocks_batch, amp)
    for batch in (128, 256, 4096):
        resident("lstm", f"resident, batch {batch}, tf32", Lstm, size(batch), stocks_batch, "tf32")
    for hidden in (64, 128):
        make = lambda: Lstm(hidden=hidden // SMALLER)
        resident("lstm", f"resident, batch 256, tf32, hidden {hidden}", make, size(256), stocks_batch, "tf32")
    resident("lstm", "resident, batch 512, tf32, gradients zeroed", Lstm, size(512), stocks_batch, "tf32", set_to_none=False)
    resident("lstm", "resident, batch 512, tf32, loss read each step", Lstm, size(512), stocks_batch, "tf32", read_each=True)
    predictions("lstm", Lstm, stocks_batch, size(256))


def predictions(work, model, make, batch):
    """The documents' evaluation: each batch's output fetched at once, or all of them together."""
    precision("tf32")
    model = model().to(DEVICE).eval()
    x, key, _ = make(batch)
    for setting, together in (("predictions fetched each batch", False), ("predictions fetched together", True)):

        def step(x, key, _, together=together):
            kept = []
            with torch.no_grad():
                for _ in range(20):
                    output = model(x, key)
                    kept.append(output if together else output.cpu())
                return torch.cat(kept).sum() if together else kept[-1].sum()

        def batches():
            while True:
                yield x, key, None

        measure(work, f"{setting}, batch {batch}", batches(), step, batch * 20, seconds=OPTIONS.seconds * 0.7)


def mlp():
    data = Table(1_000_000 if CUDA else 100_000)
    size = (lambda batch: batch) if CUDA else (lambda batch: max(batch // 4, 8))
    from_loader("mlp", "no workers, batch 512, fp32, not pinned", data, Mlp, size(512), 0, pin=False)
    from_loader("mlp", "8 workers, batch 512, bf16", data, Mlp, size(512), 8, "bf16")
    from_loader("mlp", "16 workers, batch 1024, bf16", data, Mlp, size(1024), 16, "bf16")
    for batch in (512, 8192):
        for amp in ("fp32", "tf32", "bf16"):
            resident("mlp", f"resident, batch {batch}, {amp}", Mlp, size(batch), table_batch, amp)
    resident("mlp", "resident, batch 512, tf32, gradients zeroed", Mlp, size(512), table_batch, "tf32", set_to_none=False)
    resident("mlp", "resident, batch 512, tf32, loss read each step", Mlp, size(512), table_batch, "tf32", read_each=True)
    resident("mlp", "resident, batch 512, tf32, fused AdamW", Mlp, size(512), table_batch, "tf32", fused=True)
    resident("mlp", "resident, batch 512, tf32, compiled", Mlp, size(512), table_batch, "tf32", compiled="default")
    predictions("mlp", Mlp, table_batch, size(256))


def cnn():
    data = Pictures(8_000 if CUDA else 512)
    size = (lambda batch: batch) if CUDA else (lambda batch: max(batch // 8, 8))
    case = lambda *given, **more: from_loader("cnn", *given, **more)
    case("before: no workers, batch 64, evaluated each epoch", data, Cnn, size(64), 0, "tf32", evaluate=1)
    case("after: 8 workers, batch 128, evaluated every 5 epochs", data, Cnn, size(128), 8, "tf32", evaluate=5)
    case("8 workers, batch 128, evaluated each epoch", data, Cnn, size(128), 8, "tf32", evaluate=1)
    case("8 workers, batch 64, evaluated every 5 epochs", data, Cnn, size(64), 8, "tf32", evaluate=5)
    case("8 workers, batch 128, every 5 epochs, prefetch 4", data, Cnn, size(128), 8, "tf32", evaluate=5, prefetch=4)
    for workers in (4, 16, 32):
        case(f"{workers} workers, batch 128, evaluated every 5 epochs", data, Cnn, size(128), workers, "tf32", evaluate=5)


def captcha():
    size = (lambda batch: batch) if CUDA else (lambda batch: max(batch // 32, 4))
    torch.backends.cudnn.benchmark = True
    case = lambda setting, batch, amp, **more: resident("captcha", setting, Captcha, size(batch), captcha_batch, amp, **more)
    read = {"channels_last": True, "read_each": True}
    case("as found: fp32, batch 256, loss read each step", 256, "fp32", **read)
    case("+ tf32 (hardware optimisations called)", 256, "tf32", **read)
    case("+ bf16 (precision mended)", 256, "bf16", **read)
    case("+ compiled", 256, "bf16", compiled="default", **read)
    case("+ batch 512", 512, "bf16", compiled="default", **read)
    case("+ loss not read", 512, "bf16", compiled="default", channels_last=True)
    case("+ fused AdamW", 512, "bf16", compiled="default", channels_last=True, fused=True)
    case("bf16, batch 1024, not compiled", 1024, "bf16", channels_last=True)
    case("bf16, batch 256, loss not read, not compiled", 256, "bf16", channels_last=True)
    case("bf16, batch 256, fused AdamW, not compiled", 256, "bf16", channels_last=True, fused=True)


def main():
    global OPTIONS
    works = {"lstm": lstm, "mlp": mlp, "cnn": cnn, "captcha": captcha}
    parser = argparse.ArgumentParser()
    parser.add_argument("works", nargs="*", choices=[[], *works])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json")
    OPTIONS = parser.parse_args()
    name = torch.cuda.get_device_name() if CUDA else f"CPU, {torch.get_num_threads()} threads"
    print(f"PyTorch {torch.__version__}, {name}, {len(os.sched_getaffinity(0))} CPUs", flush=True)
    for work in OPTIONS.works or works:
        works[work]()
        if OPTIONS.json:
            with open(OPTIONS.json, "w", encoding="utf-8") as file:
                json.dump({"torch": torch.__version__, "device": name, "rows": ROWS}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
