"""PyTorch's side of `tests/pytorch.rs`: python -c THIS predict|curve JOB.json …; prints a list of values a job."""

import importlib.util
import json
import pathlib
import sys

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.backends.cudnn.allow_tf32 = False


def loader(path):
    spec = importlib.util.spec_from_file_location("load_in_pytorch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(job, name, kind):
    return torch.from_numpy(np.fromfile(pathlib.Path(job["folder"]) / name, dtype=kind))


def inputs(job, preparation):
    """A function from sample numbers to what the model takes."""
    shape = preparation["shape"]
    if shape["kind"] == "sequence":
        features = table(job, "features", np.float32).view(-1, shape["features"])
        entities, steps = table(job, "entities", np.int32).long(), torch.arange(job["sequence_length"])
        return lambda samples: (features[samples[:, None] + steps], entities[samples])
    if shape["kind"] == "rows":
        features = table(job, "features", np.float32).view(-1, shape["features"])
        codes = [table(job, f"codes{place}", np.int32).long() for place in range(len(shape["categories"]))]
        codes = torch.stack(codes, dim=1) if codes else torch.zeros(len(features), 0, dtype=torch.long)
        return lambda samples: (features[samples], codes[samples])
    pixels = table(job, "features", np.uint8).view(-1, shape["height"], shape["width"], shape["channels"])
    return lambda samples: (pixels[samples].permute(0, 3, 1, 2),)


def predict(job, model, preparation):
    samples = table(job, "samples", np.int32).long()
    with torch.no_grad():
        return model(*inputs(job, preparation)(samples)).flatten().tolist()


def curve(job, model, preparation):
    task, batch = preparation["target"]["task"], job["batch"]
    kind = np.int32 if task == "classes" else np.float32
    labels = table(job, "labels", kind)
    labels = labels.long() if task == "classes" else labels.view(-1, model.outputs)
    loss_of = {
        "regression": nn.functional.mse_loss,
        "binary": nn.functional.binary_cross_entropy_with_logits,
        "classes": nn.functional.cross_entropy,
    }[task]
    steps = table(job, "samples", np.int32).long().view(-1, batch)
    model.to(job["device"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=job["learning_rate"], weight_decay=job["weight_decay"], betas=job["betas"], eps=job["eps"])
    give, losses = inputs(job, preparation), []
    model.train()
    labels = labels.to(job["device"])
    for samples in steps:
        values = tuple(value.to(job["device"]) for value in give(samples))
        if preparation["shape"]["kind"] == "pictures":
            values = (values[0].float() * model.shape["scale"] + model.shape["shift"],)
        loss = loss_of(model.prepared(*values), labels[(samples + job["label_offset"]).to(job["device"])])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), job["clip_norm"])
        optimizer.step()
        losses.append(loss.item())
    return losses


def run(what, path):
    job = json.loads(pathlib.Path(path).read_text())
    model, preparation = loader(job["loader"]).load(job["checkpoint"])
    return {"predict": predict, "curve": curve}[what](job, model, preparation)


print(json.dumps([run(sys.argv[1], path) for path in sys.argv[2:]]))
