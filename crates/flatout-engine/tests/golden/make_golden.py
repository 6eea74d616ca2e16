"""Writes the golden numbers: every operation and model in PyTorch, in f64, with its parameters, inputs, results and gradients.

    python make_golden.py            # rewrites the .json files beside this script

Sequences are time-major here as in the engine (`batch_first=False`).
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
FOLDER = pathlib.Path(__file__).parent


def flat(tensor):
    return [round(value, 12) for value in tensor.detach().reshape(-1).tolist()]


def record(name, model, inputs, compute, steps=0, optimizer=None, clip=None):
    """`compute(model, inputs)` gives (loss, {name: output}). With `steps`, also the parameters after so many updates."""
    start = {key: flat(value) for key, value in model.state_dict().items() if value.dtype == torch.float64}
    trained_inputs = {key: value.requires_grad_() for key, value in inputs.items() if value.dtype == torch.float64}
    model.zero_grad()
    loss, outputs = compute(model, inputs)
    loss.backward()
    golden = {
        "inputs": {key: flat(value) for key, value in inputs.items() if value.dtype == torch.float64},
        "indices": {key: value.reshape(-1).tolist() for key, value in inputs.items() if value.dtype != torch.float64},
        "parameters": start,
        "loss": loss.item(),
        "outputs": {key: flat(value) for key, value in outputs.items()},
        "gradients": {key: flat(value.grad) for key, value in model.named_parameters() if value.grad is not None},
        "input_gradients": {key: flat(value.grad) for key, value in trained_inputs.items() if value.grad is not None},
        "states": {key: flat(value) for key, value in model.named_buffers() if value.dtype == torch.float64},
    }
    model.eval()
    golden["evaluated"] = {key: flat(value) for key, value in compute(model, inputs)[1].items()}
    model.train()
    if optimizer is not None:
        golden["losses"] = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss, _ = compute(model, inputs)
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            golden["losses"].append(loss.item())
        golden["trained"] = {key: flat(value) for key, value in model.named_parameters()}
    (FOLDER / f"{name}.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


def seeded(maker):
    torch.manual_seed(sum(map(ord, maker.__name__)))
    maker()


def linear():
    model = nn.ModuleDict({"one": nn.Linear(5, 7), "two": nn.Linear(7, 6), "three": nn.Linear(6, 3), "four": nn.Linear(3, 2)})

    def compute(model, inputs):
        hidden = torch.tanh(model["two"](torch.relu(model["one"](inputs["x"]))))
        y = model["four"](torch.sigmoid(model["three"](hidden)))
        return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

    inputs = {"x": torch.randn(4, 5), "target": torch.randn(4, 2)}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    record("linear", model, inputs, compute, steps=5, optimizer=optimizer, clip=0.05)


def optimizers():
    for name, make in {
        "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
        "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    }.items():
        torch.manual_seed(3)
        model = nn.ModuleDict({"one": nn.Linear(3, 2)})

        def compute(model, inputs):
            y = model["one"](inputs["x"])
            return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

        inputs = {"x": torch.randn(4, 3), "target": torch.randn(4, 2)}
        record(name, model, inputs, compute, steps=6, optimizer=make(model.parameters()))


class Sequence(nn.Module):
    """The seeds' model: features and an entity's embedding through a recurrence, a linear head on the last step."""

    def __init__(self, cell, layers, features=3, hidden=5, entities=4, width=2):
        super().__init__()
        self.embedding = nn.Embedding(entities, width)
        self.rnn = cell(features + width, hidden, layers)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, entity):
        beside = self.embedding(entity).unsqueeze(0).expand(x.shape[0], -1, -1)
        states, _ = self.rnn(torch.cat([x, beside], dim=2))
        return self.head(states[-1]), states


def recurrent(name, cell):
    model = Sequence(cell, layers=3)

    def compute(model, inputs):
        y, states = model(inputs["x"], inputs["entity"])
        return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

    inputs = {"x": torch.randn(6, 4, 3), "entity": torch.tensor([0, 3, 3, 1]), "target": torch.randn(4, 1)}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    record(name, model, inputs, compute, steps=5, optimizer=optimizer, clip=1.0)


def lstm():
    recurrent("lstm", nn.LSTM)


def gru():
    recurrent("gru", nn.GRU)


def losses():
    """Each loss on the output of one linear layer."""
    kinds = {
        "huber": lambda y, inputs: F.huber_loss(y, inputs["target"].detach(), delta=0.7),
        "bce": lambda y, inputs: F.binary_cross_entropy_with_logits(y, inputs["target"].detach()),
        "cross_entropy": lambda y, inputs: F.cross_entropy(y.reshape(-1, 3), inputs["class"].reshape(-1).long()),
    }
    for name, loss in kinds.items():
        torch.manual_seed(5)
        model = nn.ModuleDict({"one": nn.Linear(3, 6)})
        inputs = {"x": 3 * torch.randn(4, 3)}
        if name == "cross_entropy":
            inputs["class"] = torch.tensor([[0, 2], [1, 1], [2, 0], [0, 1]])
        else:
            inputs["target"] = torch.rand(4, 6)

        def compute(model, inputs):
            y = model["one"](inputs["x"])
            return loss(y, inputs), {"prediction": y}

        record(name, model, inputs, compute)


def cnn():
    """Convolutions of two kinds, batch norm, both poolings, and a flattening, all in one model; images channels-last."""
    model = nn.ModuleDict(
        {
            "one": nn.Conv2d(2, 5, 3, padding=1),
            "norm": nn.BatchNorm2d(5),
            "two": nn.Conv2d(5, 4, 3, stride=2, padding=1),
            "three": nn.Conv2d(4, 3, 2),
            "flat": nn.Linear(3 * 1 * 2, 3),
            "head": nn.Linear(7, 2),
        }
    )

    def compute(model, inputs):
        x = inputs["x"].permute(0, 3, 1, 2)
        x = torch.relu(model["norm"](torch.tanh(model["one"](x))))
        x = F.max_pool2d(x, 2)
        x = torch.relu(model["two"](x))
        pooled = x.mean(dim=(2, 3))
        flat = model["flat"](torch.tanh(model["three"](x)).flatten(1))
        y = model["head"](torch.cat([pooled, flat], dim=1))
        return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

    inputs = {"x": torch.randn(3, 8, 11, 2), "target": torch.randn(3, 2)}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    record("cnn", model, inputs, compute, steps=4, optimizer=optimizer)


if __name__ == "__main__":
    for maker in [linear, optimizers, lstm, gru, losses, cnn]:
        seeded(maker)
