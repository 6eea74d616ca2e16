"""A flatout checkpoint as a PyTorch module: the same predictions, in the label's own units.

    pip install torch safetensors
    python examples/load_in_pytorch.py out/stock-lstm/best.safetensors      # prints the model

    model, preparation = load("out/stock-lstm/best.safetensors")
    model(windows, entities)    # windows: raw features [batch, sequence_length, features]; entities: their numbers [batch]

Weights have the names of a state_dict. How raw values became the model's (columns, scaling, codes, classes) lies in the
checkpoint as JSON; nothing in the file is code.
"""

import json
import sys

import torch
from safetensors import safe_open
from torch import nn


class Prepared(nn.Module):
    """What all models share: standardised inputs and outputs in the label's units. Classes stay logits."""

    def __init__(self, preparation):
        super().__init__()
        target = preparation["target"]
        regression = target["task"] == "regression"
        self.inputs = [torch.tensor(preparation[key]) for key in ("mean", "std")]
        self.scale = target["scale"] if regression else 1.0
        self.shift = torch.tensor(target["mean"]) if regression else 0.0
        self.outputs = 1 if target["task"] == "binary" else len(target["names"])

    def standardise(self, features):
        mean, std = self.inputs
        return torch.nan_to_num((features - mean) / std)

    def restore(self, outputs):
        return outputs * self.scale + self.shift


class Sequence(Prepared):
    """LSTM or GRU over windows, the embeddings of the entity and of categories next to every step."""

    def __init__(self, preparation, tensors):
        super().__init__(preparation)
        name = "lstm" if "lstm.weight_ih_l0" in tensors else "gru"
        layers = sum(key.startswith(f"{name}.weight_ih_l") for key in tensors)
        hidden, width = tensors[f"{name}.weight_hh_l0"].shape[1], tensors[f"{name}.weight_ih_l0"].shape[1]
        cell = {"lstm": nn.LSTM, "gru": nn.GRU}[name]
        self.embedding = nn.Embedding(*tensors["embedding.weight"].shape) if "embedding.weight" in tensors else None
        categories = range(len(preparation["categories"]))
        for position in categories:
            self.add_module(f"embedding{position}", nn.Embedding(*tensors[f"embedding{position}.weight"].shape))
        self.embeddings = [getattr(self, f"embedding{position}") for position in categories]
        self.recurrent = name
        self.add_module(name, cell(width, hidden, layers, batch_first=True))
        self.head = nn.Linear(hidden, self.outputs)

    def prepared(self, windows, entities, codes=None):
        beside = [self.embedding(entities)] if self.embedding is not None else []
        beside += [embedding(codes[:, place]) for place, embedding in enumerate(self.embeddings)]
        steps = [part[:, None, :].expand(-1, windows.shape[1], -1) for part in beside]
        return self.head(getattr(self, self.recurrent)(torch.cat([windows, *steps], dim=2))[0][:, -1])

    def forward(self, windows, entities, codes=None):
        """`entities`: places in preparation["entities"], their number for one that is not there; `codes`: of the windows' last rows."""
        return self.restore(self.prepared(self.standardise(windows), entities, codes))


class Rows(Prepared):
    """Linear layers over features and the embeddings of categories."""

    def __init__(self, preparation, tensors):
        super().__init__(preparation)
        count = len(preparation["categories"])
        for position in range(count):
            self.add_module(f"embedding{position}", nn.Embedding(*tensors[f"embedding{position}.weight"].shape))
        self.embeddings = [getattr(self, f"embedding{position}") for position in range(count)]
        shapes = [tensors[f"layers.{layer}.weight"].shape for layer in range(sum(key.startswith("layers.") for key in tensors) // 2)]
        self.layers = nn.ModuleList(nn.Linear(inputs, outputs) for outputs, inputs in shapes)
        self.head = nn.Linear(tensors["head.weight"].shape[1], self.outputs)

    def prepared(self, features, codes):
        parts = [features] + [embedding(codes[:, place]) for place, embedding in enumerate(self.embeddings)]
        values = torch.cat(parts, dim=1)
        for layer in self.layers:
            values = torch.relu(layer(values))
        return self.head(values)

    def forward(self, features, codes):
        """`codes[:, i]`: 1 + the place of the value in preparation["categories"][i]["values"], 0 for a value that is not there."""
        return self.restore(self.prepared(self.standardise(features), codes))


class Pictures(Prepared):
    """Convolutions, each followed by pooling, batch normalisation and ReLU."""

    def __init__(self, preparation, tensors):
        super().__init__(preparation)
        self.shape = preparation["shape"]
        layers = sum(key.startswith("convolutions.") for key in tensors) // 2
        shapes = [tensors[f"convolutions.{layer}.weight"].shape for layer in range(layers)]
        self.convolutions = nn.ModuleList(nn.Conv2d(shape[1], shape[0], 3, padding=1) for shape in shapes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(shape[0]) for shape in shapes)
        self.positions = "maps.weight" in tensors
        if self.positions:
            filters, channels = tensors["maps.weight"].shape[:2]
            self.maps, self.maps_norm = nn.Conv2d(channels, filters, 1), nn.BatchNorm2d(filters)
        self.head = nn.Linear(tensors["head.weight"].shape[1], self.outputs)

    def prepared(self, values):
        for convolution, norm in zip(self.convolutions, self.norms):
            values = convolution(values)
            if min(values.shape[2:]) >= 2:
                values = nn.functional.max_pool2d(values, 2)
            values = torch.relu(norm(values))
        if self.positions:
            values = torch.relu(self.maps_norm(self.maps(values))).flatten(1)
        else:
            values = values.mean(dim=(2, 3))
        return self.head(values)

    def forward(self, pixels):
        """`pixels`: bytes [batch, channels, height, width], of the size in preparation["shape"]."""
        return self.restore(self.prepared(pixels.float() * self.shape["scale"] + self.shape["shift"]))


def code(category, value):
    """The code of a value of preparation["categories"][i]: its place from 1 or its hash (FNV-1a), 0 where it is not known."""
    buckets = category.get("buckets", 0)
    if not buckets:
        return category["values"].index(value) + 1 if value in category["values"] else 0
    hashed = 0xCBF29CE484222325
    for byte in value.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % (1 << 64)
    return 1 + hashed % buckets


def load(path):
    """The module in evaluation mode, and how its data were prepared."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    preparation = json.loads(tensors.pop("flatout.preparation").numpy().tobytes())
    # The optimizer's moments lie beside the weights.
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("optimizer.")}
    kind = {"sequence": Sequence, "rows": Rows, "pictures": Pictures}[preparation["shape"]["kind"]]
    model = kind(preparation, tensors)
    left = model.load_state_dict(tensors, strict=False)
    # PyTorch counts batches of a normalisation; nothing depends on it.
    missing = [name for name in left.missing_keys if not name.endswith("num_batches_tracked")]
    if missing or left.unexpected_keys:
        raise ValueError(f"{path} does not fit: missing {missing}, unexpected {left.unexpected_keys}")
    return model.eval(), preparation


if __name__ == "__main__":
    loaded, prepared = load(sys.argv[1])
    print(loaded)
    target = prepared["target"]
    print(f"{target['task']} of {prepared['label']}:", ", ".join(target["names"][:10]))
