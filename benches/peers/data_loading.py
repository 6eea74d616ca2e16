"""Loading side by side: flatout's data engine against the libraries people use, on the same machine in the same run.

    cargo build --release -p flatout-data --example data_bench
    python benches/peers/data_loading.py [--work DIR] [--only csv,jpeg] [--output FILE]

Needs torch and what benches/requirements.txt names. Every figure is the best of its repetitions, unless it is said to be their
middle. SPDL decodes with FFmpeg, which its wheel does not bring: that of the `av` wheel serves.
"""

import argparse
import datetime
import glob
import importlib.util
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ROOT / "target/release/examples/data_bench"


def ours(*arguments):
    return json.loads(subprocess.run([BINARY, *map(str, arguments)], check=True, capture_output=True, text=True).stdout)


def best_seconds(work, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def loader_rate(dataset, batch, workers, seconds=2.0):
    """Samples a second of a DataLoader that shuffles, after its first batches."""
    from torch.utils.data import DataLoader

    loader = DataLoader(dataset, batch, shuffle=True, num_workers=workers, drop_last=True, persistent_workers=workers > 0)
    iterator, taken = iter(loader), 0
    for _ in range(3):
        next(iterator)
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        try:
            next(iterator)
        except StopIteration:
            iterator = iter(loader)
            continue
        taken += batch
    rate = taken / (time.perf_counter() - start)
    del iterator, loader
    return rate


def best_loader(dataset, batch, seconds=2.0):
    rates = {workers: loader_rate(dataset, batch, workers, seconds) for workers in (0, 1, 2)}
    workers = max(rates, key=rates.get)
    return {"samples_per_s": rates[workers], "workers": workers}


def tabular(work):
    import torch
    from torch.utils.data import TensorDataset

    data = TensorDataset(torch.rand(500_000, 128), torch.rand(500_000))
    return {"flatout": ours("tabular"), "torch DataLoader": best_loader(data, 512)}


def windows(work):
    import numpy as np
    import torch
    from torch.utils.data import Dataset

    class Stocks(Dataset):
        def __init__(self):
            self.x = np.random.default_rng(0).random((500, 1500, 20), dtype=np.float32)
            self.length, self.per_stock = 60, 1500 - 60

        def __len__(self):
            return 500 * self.per_stock

        def __getitem__(self, index):
            stock, day = divmod(index, self.per_stock)
            window = self.x[stock, day : day + self.length]
            return torch.from_numpy(window), stock, torch.tensor(float(self.x[stock, day + self.length, 0]))

    answer = {"flatout": ours("windows")}
    stocks = Stocks()
    features = torch.from_numpy(stocks.x)
    steps = torch.arange(60)
    for batch in (512, 4096):

        def gather():
            for _ in range(20):
                stock = torch.randint(0, 500, (batch,))
                day = torch.randint(0, stocks.per_stock, (batch,))
                features[stock[:, None], day[:, None] + steps], features[stock, day + 60, 0]

        gather()
        answer[f"torch batched gather {batch}"] = {"samples_per_s": 20 * batch / best_seconds(gather, 5)}
        answer[f"torch DataLoader {batch}"] = best_loader(stocks, batch)
    return answer


def csv(work):
    import pandas
    import polars
    import pyarrow
    import pyarrow.csv

    files = sorted(glob.glob(f"{work}/clicks/log_standard_part*.csv"))
    size = sum(os.path.getsize(file) for file in files)
    answer = {"bytes": size, "flatout": ours("csv", f"{work}/clicks/log_standard.csv")}
    answer["flatout, 16 threads"] = ours("csv", f"{work}/clicks/log_standard.csv", 16)
    answer["polars"] = {"seconds": best_seconds(lambda: polars.read_csv(files).rechunk())}
    answer["pyarrow"] = {"seconds": best_seconds(lambda: pyarrow.concat_tables(map(pyarrow.csv.read_csv, files)).combine_chunks())}
    answer["pandas"] = {"seconds": best_seconds(lambda: pandas.concat(map(pandas.read_csv, files)), 1)}
    return answer


def parquet(work):
    import pyarrow.parquet

    files = sorted(glob.glob(f"{work}/stocks/*.parquet"))
    read = lambda: pyarrow.parquet.ParquetDataset(files).read().combine_chunks()
    return {
        "flatout": ours("parquet", f"{work}/stocks"),
        "flatout, 16 threads": ours("parquet", f"{work}/stocks", 16),
        "pyarrow": {"seconds": best_seconds(read)},
    }


def jpeg(work):
    import numpy as np
    import torch
    from PIL import Image
    from torch.utils.data import Dataset

    class Pictures(Dataset):
        def __init__(self, folder):
            self.files = sorted(glob.glob(f"{folder}/*/*.jpg"))

        def __len__(self):
            return len(self.files)

        def __getitem__(self, index):
            picture = Image.open(self.files[index]).convert("L")
            if picture.size != (128, 128):
                picture = picture.resize((128, 128), Image.BILINEAR)
            return torch.from_numpy(np.asarray(picture).copy())

    answer = {}
    random = np.random.default_rng(0)
    for side in (128, 512):
        folder = f"{work}/jpeg{side}"
        for number in range(400 if not os.path.isdir(folder) else 0):
            os.makedirs(f"{folder}/c{number % 2}", exist_ok=True)
            # Photographs are smooth with some texture: noise at a quarter of the resolution, enlarged.
            coarse = random.integers(0, 255, (side // 8, side // 8, 3), dtype=np.uint8)
            picture = Image.fromarray(coarse).resize((side, side), Image.BICUBIC)
            fine = random.normal(0, 6, (side, side, 3)) + np.asarray(picture)
            Image.fromarray(np.clip(fine, 0, 255).astype(np.uint8)).save(f"{folder}/c{number % 2}/{number}.jpg", quality=88)
        answer[f"{side} px"] = {
            "flatout": ours("jpeg", folder),
            "torch DataLoader + PIL": best_loader(Pictures(folder), 64, 3.0),
            "spdl": spdl_rate(work, folder),
        }
    return answer


def ffmpeg_folder(work):
    """FFmpeg's libraries out of the `av` wheel, under the names that SPDL looks for."""
    package = pathlib.Path(importlib.util.find_spec("av").origin).parents[1]
    folder = pathlib.Path(work) / "ffmpeg"
    folder.mkdir(exist_ok=True)
    for library in (package / "av.libs").iterdir():
        plain = re.sub(r"-[0-9a-f]+\.so\.(\d+).*", r".so.\1", library.name)
        for name in {library.name, plain}:
            if not (folder / name).exists():
                (folder / name).symlink_to(library)
    return folder


def spdl_rate(work, folder, seconds=3.0):
    """In a process of its own: the loader looks for libraries when a process starts."""
    if importlib.util.find_spec("spdl") is None or importlib.util.find_spec("av") is None:
        return {"error": "spdl or av is not installed"}
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ffmpeg_folder(work))}
    command = [sys.executable, __file__, "--spdl", folder, str(seconds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:  # a peer that does not run is said, not hidden
        return {"error": done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else f"exit {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def spdl_child(folder, seconds):
    from concurrent.futures import ThreadPoolExecutor

    import spdl.io

    files = sorted(glob.glob(f"{folder}/*/*.jpg"))
    batches = [files[start : start + 64] for start in range(0, len(files), 64)]

    def whole_batches(batch):
        return len(spdl.io.to_numpy(spdl.io.load_image_batch(batch, width=128, height=128, pix_fmt="gray")))

    # Its own way of loading a batch, and one task a picture; each with its best number of threads.
    filters = spdl.io.get_video_filter_desc(scale_width=128, scale_height=128, pix_fmt="gray")

    def one(file):
        frames = spdl.io.decode_packets(spdl.io.demux_image(file), filter_desc=filters)
        return spdl.io.to_numpy(spdl.io.convert_frames(frames))

    best = {"samples_per_s": 0.0}
    for name, work, items, size in (("batches", whole_batches, batches, 64), ("pictures", one, files, 1)):
        try:
            work(items[0])
        except Exception as error:
            print(name, error, file=sys.stderr)
            continue
        for threads in (1, 2):
            with ThreadPoolExecutor(threads) as pool:
                start, taken = time.perf_counter(), 0
                while time.perf_counter() - start < seconds / 2:
                    list(pool.map(work, items))
                    taken += len(files)
                rate = taken / (time.perf_counter() - start)
            if rate > best["samples_per_s"]:
                best = {"samples_per_s": rate, "way": name, "threads": threads}
    if best["samples_per_s"] == 0.0:
        raise SystemExit("SPDL decoded nothing")
    print(json.dumps(best))


def cache(work):
    return {"flatout": ours("cache", work)}


def stream(work):
    return {"flatout": ours("stream", work, 50)}


WORKS = {work.__name__: work for work in (tabular, windows, csv, parquet, jpeg, cache, stream)}


def main():
    if sys.argv[1:2] == ["--spdl"]:
        return spdl_child(sys.argv[2], float(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", default="/tmp/flatout-data-bench")
    parser.add_argument("--only", default=",".join(WORKS))
    parser.add_argument("--output")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    ours("make", options.work)
    import torch

    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    result = {
        "date": datetime.date.today().isoformat(),
        "machine": {"cpu": cpu, "usable_cpus": len(os.sched_getaffinity(0)), "torch": torch.__version__},
    }
    for name in options.only.split(","):
        result[name] = WORKS[name](options.work)
        print(name, json.dumps(result[name], indent=1), flush=True)
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
