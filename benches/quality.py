"""Default settings of `flatout train` against the defaults of others, on data that are here or are generated: scikit-learn's
HistGradientBoosting for tables, PyTorch networks of the same shape for windows and images.

    python benches/quality.py --flatout target/debug/flatout > benches/results/quality-DATE.md

Every set is split once; both sides learn from the same file and are scored on the same held-out one, by the same code. flatout gets
nothing but the data and the name of the label. Needs scikit-learn, pandas, numpy, pillow and PyTorch.
"""

import argparse
import json
import pathlib
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
import warnings

import numpy as np
import pandas as pd

SEEDS = (1, 2, 3)


def split(frame, seed=0, share=0.25):
    order = np.random.default_rng(seed).permutation(len(frame))
    cut = int(len(frame) * share)
    return frame.iloc[order[cut:]], frame.iloc[order[:cut]]


def from_sklearn(load):
    from sklearn import datasets

    bunch = getattr(datasets, load)(as_frame=True)
    return bunch.frame.rename(columns={"target": "y"}).rename(columns=lambda name: name.replace(" ", "_"))


def breast_cancer():
    return from_sklearn("load_breast_cancer"), "y", "auc"


def digits():
    frame = from_sklearn("load_digits")
    return frame.assign(y="d" + frame["y"].astype(str)), "y", "accuracy"


def diabetes():
    return from_sklearn("load_diabetes"), "y", "mse"


def friedman():
    from sklearn.datasets import make_friedman1

    x, y = make_friedman1(8000, n_features=10, noise=1.0, random_state=0)
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(10)]).assign(y=y), "y", "mse"


def classification():
    from sklearn.datasets import make_classification

    x, y = make_classification(20000, n_features=20, n_informative=8, n_redundant=4, flip_y=0.05, class_sep=0.8, random_state=0)
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(20)]).assign(y=y), "y", "auc"


def clicks():
    """Categories of many values and numbers: what a user likes is a product of two hidden vectors."""
    random = np.random.default_rng(0)
    rows, users, items = 60000, 300, 200
    user, item = random.integers(0, users, rows), random.integers(0, items, rows)
    hour = random.integers(0, 24, rows)
    taste, kind = random.normal(size=(users, 3)), random.normal(size=(items, 3))
    age = random.uniform(18, 60, users)
    logit = (taste[user] * kind[item]).sum(1) + np.sin(hour / 24 * 2 * np.pi) + 0.03 * (age[user] - 40) - 0.5
    y = (random.uniform(size=rows) < 1 / (1 + np.exp(-logit))).astype(int)
    frame = pd.DataFrame({"user_id": [f"u{n}" for n in user], "item_id": [f"i{n}" for n in item], "hour": hour, "age": age[user], "y": y})
    return frame, "y", "auc"


TABLES = {
    "breast cancer, 569 rows": breast_cancer,
    "digits as rows, 1,797": digits,
    "diabetes, 442 rows": diabetes,
    "Friedman #1, 8,000 rows": friedman,
    "classification, 20,000 rows": classification,
    "clicks with ids, 60,000 rows": clicks,
}


def gradient_boosting(train, test, label, score):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.metrics import roc_auc_score

    texts = [name for name in train if name != label and not pd.api.types.is_numeric_dtype(train[name])]
    many = [name for name in texts if train[name].nunique() > 255]
    both = pd.concat([train, test]).copy()
    for name in texts:
        both[name] = both[name].astype("category")
        if name in many:
            both[name] = both[name].cat.codes
    train, test = both.iloc[: len(train)], both.iloc[len(train) :]
    kind = HistGradientBoostingRegressor if score == "mse" else HistGradientBoostingClassifier
    found = []
    for seed in SEEDS:
        model = kind(random_state=seed, categorical_features="from_dtype").fit(train.drop(columns=label), train[label])
        if score == "mse":
            found.append(float(((model.predict(test.drop(columns=label)) - test[label]) ** 2).mean()))
        elif score == "auc":
            found.append(float(roc_auc_score(test[label], model.predict_proba(test.drop(columns=label))[:, 1])))
        else:
            found.append(float(model.score(test.drop(columns=label), test[label])))
    return found


def flatout(binary, data, test, score, *arguments):
    found = []
    for seed in SEEDS:
        out = data.parent / f"out{seed}"
        command = [binary, "train", "--data", data, "--output-dir", out, "--seed", seed, "--device", "cpu", "--json", *arguments]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        scored = subprocess.run([binary, "evaluate", out, test, "--json"], capture_output=True, text=True)
        if scored.returncode:
            raise SystemExit(scored.stderr)
        scores = json.loads(scored.stdout)
        found.append(scores.get(score, scores["loss"] if score == "mse" else None))
    return found


def table(binary, make, folder, extra):
    frame, label, score = make()
    train, test = split(frame)
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    ours = flatout(binary, folder / "train.csv", folder / "test.csv", score, "--label", label, *extra)
    return score, ours, "HistGradientBoosting", gradient_boosting(train, test, label, score)


def pytorch(model, train, test, loss, seed, epochs=10, batch=64):
    """The usual loop: Adam at 1e-3, no schedule, the last epoch's weights."""
    import torch

    torch.manual_seed(seed)
    model = model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(train[0])).split(batch):
            optimizer.zero_grad()
            loss(model(train[0][rows]), train[1][rows]).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part) for part in test[0].split(1024)])


def windows(binary, folder, extra):
    """One series per file: the next value of an autoregression with a nonlinear twist."""
    import torch

    random = np.random.default_rng(0)
    length, count, window = 500, 12, 20
    for part in ("train", "test"):
        (folder / part).mkdir()
    cut = 400
    series = []
    for number in range(count):
        noise = random.normal(size=length + 50)
        x = np.zeros(length + 50)
        for t in range(3, length + 50):
            x[t] = 0.6 * x[t - 1] - 0.5 * np.tanh(2 * x[t - 2]) + 0.3 * x[t - 3] + 0.5 * noise[t]
        x = x[50:]
        frame = pd.DataFrame({"date": pd.date_range("2020-01-01", periods=length), "x": x, "x2": x**2})
        frame["y"] = np.append(x[1:], np.nan)
        frame = frame.iloc[:-1]
        series.append(frame)
        frame.iloc[:cut].to_parquet(folder / "train" / f"s{number}.parquet", index=False)
        frame.iloc[cut - window :].to_parquet(folder / "test" / f"s{number}.parquet", index=False)
    arguments = ["--label", "y", "--horizon", "0", "--sequence-length", window, "--hidden-size", 64, *extra]
    ours = flatout(binary, folder / "train", folder / "test", "ic", *arguments)

    def cut_windows(frames):
        x, y = [], []
        for frame in frames:
            values = frame[["x", "x2"]].to_numpy("float32")
            for end in range(window, len(frame) + 1):
                x.append(values[end - window : end])
                y.append(frame["y"].to_numpy("float32")[end - 1])
        return torch.tensor(np.array(x)), torch.tensor(np.array(y))

    train, test = cut_windows([frame.iloc[:cut] for frame in series]), cut_windows([frame.iloc[cut - window :] for frame in series])
    mean, std = train[0].mean((0, 1)), train[0].std((0, 1))
    train, test = ((train[0] - mean) / std, train[1]), ((test[0] - mean) / std, test[1])

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = torch.nn.LSTM(2, 64, 2, batch_first=True), torch.nn.Linear(64, 1)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])[:, 0]

    theirs = []
    for seed in SEEDS:
        predicted = pytorch(Net, train, test, torch.nn.functional.mse_loss, seed)
        theirs.append(float(np.corrcoef(predicted.numpy(), test[1].numpy())[0, 1]))
    return "ic", ours, "PyTorch LSTM", theirs


def pictures(binary, folder, extra):
    """scikit-learn's digits as 8×8 images, one folder per class."""
    import torch
    from PIL import Image
    from sklearn.datasets import load_digits

    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    images, classes = (bunch.images[order] / 16 * 255).astype("uint8"), bunch.target[order]
    cut = len(order) // 4
    for part, rows in (("test", range(cut)), ("train", range(cut, len(order)))):
        for row in rows:
            path = folder / part / str(classes[row]) / f"{row}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(images[row]).save(path)
    ours = flatout(binary, folder / "train", folder / "test", "accuracy", "--hidden-size", 64, "--num-layers", 3, *extra)
    x, y = torch.tensor(images, dtype=torch.float32)[:, None] / 255, torch.tensor(classes)
    train, test = (x[cut:], y[cut:]), (x[:cut], y[:cut])
    mean, std = train[0].mean(), train[0].std()
    train, test = ((train[0] - mean) / std, train[1]), ((test[0] - mean) / std, test[1])

    def net():
        layers, before = [], 1
        for width in (16, 32, 64):
            layers += [torch.nn.Conv2d(before, width, 3, padding=1), torch.nn.MaxPool2d(2), torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
            before = width
        return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))

    theirs = []
    for seed in SEEDS:
        predicted = pytorch(net, train, test, torch.nn.functional.cross_entropy, seed)
        theirs.append(float((predicted.argmax(1) == test[1]).float().mean()))
    return "accuracy", ours, "PyTorch CNN", theirs


def told(values):
    spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4f}{spread}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flatout", default="flatout")
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("extra", nargs="*", help="more arguments of `flatout train`, after --")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    globals()["SEEDS"] = range(1, arguments.seeds + 1)
    sets = {name: (lambda folder, make=make: table(arguments.flatout, make, folder, arguments.extra)) for name, make in TABLES.items()}
    sets["windows, 12 series of 500"] = lambda folder: windows(arguments.flatout, folder, arguments.extra)
    sets["digits as images, 1,797"] = lambda folder: pictures(arguments.flatout, folder, arguments.extra)
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {arguments.seeds} seeds each: mean ± standard deviation on a quarter (windows: the last fifth) held out.\n")
    print("| data | score | flatout | other | | at or above |\n| --- | --- | ---: | --- | ---: | --- |")
    for name, run in sets.items():
        if arguments.only not in name:
            continue
        folder = pathlib.Path(tempfile.mkdtemp())
        score, ours, other, theirs = run(folder)
        shutil.rmtree(folder)
        sign = -1 if score == "mse" else 1
        better = sign * (statistics.mean(ours) - statistics.mean(theirs)) >= 0
        print(f"| {name} | {score} | {told(ours)} | {other} | {told(theirs)} | {'yes' if better else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
