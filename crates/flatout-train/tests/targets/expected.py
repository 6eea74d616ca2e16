"""PyTorch's side of `tests/targets.rs`: python -c THIS DATA.csv PREDICTIONS.csv JOB.json; prints the losses of the training part and the
scores of the validation part, from predictions that the engine made."""

import csv
import json
import sys

import numpy as np
import torch
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)


def columns(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def numbers(values):
    return torch.tensor([float(value) for value in values])


def balanced(classes, training):
    counts = torch.bincount(classes[:training]).double()
    return (training / (len(counts) * counts))[classes]


data, predicted, job = columns(sys.argv[1]), columns(sys.argv[2]), json.load(open(sys.argv[3]))
rows, training = len(data["click"]), job["training"]
sample = numbers(data["weight"]) if job["weighted"] else torch.ones(rows)
tabs = sorted(set(data["tab"]))
label = {
    "click": numbers(data["click"]),
    "like": numbers(data["like"]),
    "watch": numbers(data["watch"]),
    "tab": torch.tensor([tabs.index(value) for value in data["tab"]]),
}
logit = lambda p: torch.log(p) - torch.log1p(-p)
watch = label["watch"][:training]
deviation = watch.std(correction=0)
losses, scores = {}, {}

for name in ["click", "like"]:
    probability = numbers(predicted[f"p_{name}"])
    entropy = F.binary_cross_entropy(probability, label[name], reduction="none")
    smooth = label[name] * (1 - job["smoothing"]) + job["smoothing"] / 2
    losses[name] = F.binary_cross_entropy(probability, smooth, reduction="none")
    if job["focal"] == name:
        own = torch.where(label[name] > 0.5, probability, 1 - probability)
        losses[name] = (1 - own) ** 2 * entropy
    ranks = probability[training:].argsort().argsort().double()
    positive = label[name][training:] > 0.5
    count = positive.sum().item()
    area = (ranks[positive].sum() - count * (count - 1) / 2) / (count * (len(positive) - count))
    scores[name] = {"loss": entropy[training:].mean().item(), "auc": area.item()}

share = torch.stack([numbers(predicted[f"tab_p_{tab}"]) for tab in tabs], dim=1)
plain = -torch.log(share[torch.arange(rows), label["tab"]])
losses["tab"] = (1 - job["smoothing"]) * plain - job["smoothing"] * torch.log(share).mean(dim=1)
found = share.argmax(dim=1)
f1 = []
for place in range(len(tabs)):
    hits = ((found == place) & (label["tab"] == place))[training:].sum().item()
    seen = (found[training:] == place).sum().item() + (label["tab"][training:] == place).sum().item()
    f1.append(2 * hits / seen if seen else 0.0)
scores["tab"] = {
    "loss": plain[training:].mean().item(),
    "accuracy": (found == label["tab"])[training:].double().mean().item(),
    "f1": float(np.mean(f1)),
}

if job["watch"] == "quantile":
    each = []
    for quantile in [0.1, 0.5, 0.9]:
        error = label["watch"] - numbers(predicted[f"watch_q{quantile}"])
        each.append(torch.maximum(quantile * error, (quantile - 1) * error))
    own, middle = torch.stack(each).mean(dim=0), numbers(predicted["watch_q0.5"])
    losses["watch"] = own / deviation
else:
    middle = numbers(predicted["watch"])
    own = (middle - label["watch"]).abs() if job["watch"] == "mae" else (middle - label["watch"]) ** 2
    losses["watch"] = own / (deviation if job["watch"] == "mae" else deviation**2)
scores["watch"] = {"loss": own[training:].mean().item(), "mae": (middle - label["watch"]).abs()[training:].mean().item()}

total = 0.0
for name, loss in losses.items():
    weight = sample.clone()
    if job["balanced"] and name != "watch":
        weight = weight * balanced(label[name].long(), training)
    total += job["label_weight"].get(name, 1.0) * (weight * loss)[:training].mean().item() / len(losses)
print(json.dumps({"loss": total, "scores": scores}))
