"""A flatout checkpoint as a PyTorch module: the same predictions, in the label's own units.

    pip install torch safetensors
    python examples/load_in_pytorch.py out/stock-lstm/best.safetensors      # prints the model

    model, preparation = load("out/stock-lstm/best.safetensors")
    model(windows, entities)    # windows: raw features [batch, sequence_length, features]; entities: their numbers [batch]

Raw data go in through `table` (rows of a table, codes included) and `image` (a file or an array of any size), and `answers` names what
comes out, as `flatout predict` does:

    answers(preparation, model(*table(preparation, pandas.read_csv("clicks.csv"))))
    answers(preparation, model(image(preparation, "0001.png")[None]))

`flatout export CHECKPOINT --out model.py` writes this file with the checkpoint next to it; `load()` then needs no path.

Weights have the names of a state_dict. How raw values became the model's (columns, scaling, codes, classes) lies in the
checkpoint as JSON; nothing in the file is code.
"""

import json
import math
import pathlib
import re
import sys

import torch
from safetensors import safe_open
from torch import nn


class Prepared(nn.Module):
    """What all models share: standardised inputs and outputs in the label's units. Classes stay logits."""

    def __init__(self, preparation):
        super().__init__()
        self.inputs = [torch.tensor(preparation[key]) for key in ("mean", "std")]
        units = [unit for head in heads(preparation["target"]) for unit in head_units(head)]
        self.scale, self.shift = torch.tensor(units).T
        self.outputs = len(units)

    def standardise(self, features):
        mean, std = self.inputs
        return torch.nan_to_num((features - mean) / std)

    def restore(self, outputs):
        return outputs * self.scale + self.shift


def heads(target):
    """The target of each label, where there are several of different kinds."""
    return target["heads"] if target["task"] == "several" else [target]


def head_units(target):
    """Scale and shift of each output of a label; those of classes are logits and stay as they are."""
    if target["task"] != "regression":
        return [(1.0, 0.0)] * (1 if target["task"] == "binary" else len(target["names"]))
    return [(target["scale"], mean) for mean in target["mean"] for _ in range(len(target.get("quantiles", [])) or 1)]


class Block(nn.Module):
    """A residual block of two causal convolutions over [batch, channels, steps]."""

    def __init__(self, tensors, name, dilation):
        super().__init__()
        (hidden, width, taps), self.dilation = tensors[name + "conv1.weight"].shape, dilation
        self.conv1, self.conv2 = nn.Conv1d(width, hidden, taps, dilation=dilation), nn.Conv1d(hidden, hidden, taps, dilation=dilation)
        self.downsample = nn.Conv1d(width, hidden, 1) if name + "downsample.weight" in tensors else nn.Identity()

    def forward(self, values):
        before = ((self.conv1.kernel_size[0] - 1) * self.dilation, 0)
        branch = torch.relu(self.conv1(nn.functional.pad(values, before)))
        branch = torch.relu(self.conv2(nn.functional.pad(branch, before)))
        return torch.relu(branch + self.downsample(values))


# A tensor that tells each model of sequences.
SEQUENCES = {"lstm": "lstm.weight_ih_l0", "gru": "gru.weight_ih_l0", "tcn": "blocks.0.conv1.weight", "transformer": "encoder.norm.weight"}


class Sequence(Prepared):
    """LSTM, GRU, TCN or transformer over windows, the embeddings of the entity and of categories next to every step."""

    def __init__(self, preparation, tensors, heads=4):
        super().__init__(preparation)
        self.name = next(name for name, key in SEQUENCES.items() if key in tensors)
        self.embedding = nn.Embedding(*tensors["embedding.weight"].shape) if "embedding.weight" in tensors else None
        categories = range(len(preparation["categories"]))
        for position in categories:
            self.add_module(f"embedding{position}", nn.Embedding(*tensors[f"embedding{position}.weight"].shape))
        self.embeddings = [getattr(self, f"embedding{position}") for position in categories]
        if self.name == "tcn":
            count = 1 + max(int(key.split(".")[1]) for key in tensors if key.startswith("blocks."))
            self.blocks = nn.ModuleList(Block(tensors, f"blocks.{block}.", 2**block) for block in range(count))
        elif self.name == "transformer":
            self.input = nn.Linear(*reversed(tensors["input.weight"].shape))
            self.positions = nn.Parameter(tensors["positions"].clone())
            width, wide = tensors["input.weight"].shape[0], tensors["encoder.layers.0.linear1.weight"].shape[0]
            layer = nn.TransformerEncoderLayer(width, heads, wide, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            count = sum(key.endswith("linear1.weight") for key in tensors)
            self.encoder = nn.TransformerEncoder(layer, count, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        else:
            self.both = f"{self.name}.weight_ih_l0_reverse" in tensors
            layers = sum(key.startswith(f"{self.name}.weight_ih_l") for key in tensors) // (2 if self.both else 1)
            hidden, width = tensors[f"{self.name}.weight_hh_l0"].shape[1], tensors[f"{self.name}.weight_ih_l0"].shape[1]
            cell = {"lstm": nn.LSTM, "gru": nn.GRU}[self.name]
            self.add_module(self.name, cell(width, hidden, layers, batch_first=True, bidirectional=self.both))
        self.head = nn.Linear(tensors["head.weight"].shape[1], self.outputs)

    def prepared(self, windows, entities, codes=None):
        beside = [self.embedding(entities)] if self.embedding is not None else []
        beside += [embedding(codes[:, place]) for place, embedding in enumerate(self.embeddings)]
        steps = [part[:, None, :].expand(-1, windows.shape[1], -1) for part in beside]
        values = torch.cat([windows, *steps], dim=2)
        if self.name == "tcn":
            values = values.transpose(1, 2)
            for block in self.blocks:
                values = block(values)
            return self.head(values[:, :, -1])
        if self.name == "transformer":
            return self.head(self.encoder(self.input(values) + self.positions).mean(1))
        values = getattr(self, self.name)(values)[0]
        if not self.both:
            return self.head(values[:, -1])
        half = values.shape[2] // 2
        # Each direction's state when it has read everything.
        return self.head(torch.cat([values[:, -1, :half], values[:, 0, half:]], dim=1))

    def forward(self, windows, entities, codes=None):
        """`entities`: places in preparation["entities"], their number for one that is not there; `codes`: of the windows' last rows."""
        return self.restore(self.prepared(self.standardise(windows), entities, codes))


class Rows(Prepared):
    """Linear layers over features and the embeddings of categories; wide-deep adds a weight per feature and per value of a category."""

    def __init__(self, preparation, tensors, heads=4):
        super().__init__(preparation)
        count = len(preparation["categories"])
        for position in range(count):
            self.add_module(f"embedding{position}", nn.Embedding(*tensors[f"embedding{position}.weight"].shape))
        self.embeddings = [getattr(self, f"embedding{position}") for position in range(count)]
        shapes = [tensors[f"layers.{layer}.weight"].shape for layer in range(sum(key.startswith("layers.") for key in tensors) // 2)]
        self.layers = nn.ModuleList(nn.Linear(inputs, outputs) for outputs, inputs in shapes)
        self.head = nn.Linear(tensors["head.weight"].shape[1], self.outputs)
        self.wide = nn.Linear(tensors["wide.weight"].shape[1], self.outputs) if "wide.weight" in tensors else None
        wide = [f"wide_embedding{position}" for position in range(count) if f"wide_embedding{position}.weight" in tensors]
        for name in wide:
            self.add_module(name, nn.Embedding(*tensors[name + ".weight"].shape))
        self.wide_embeddings = [getattr(self, name) for name in wide]

    def prepared(self, features, codes):
        parts = [features] + [embedding(codes[:, place]) for place, embedding in enumerate(self.embeddings)]
        values = torch.cat(parts, dim=1)
        for layer in self.layers:
            values = torch.relu(layer(values))
        values = self.head(values)
        if self.wide is not None:
            values = values + self.wide(features)
        for place, embedding in enumerate(self.wide_embeddings):
            values = values + embedding(codes[:, place])
        return values

    def forward(self, features, codes):
        """`codes[:, i]`: 1 + the place of the value in preparation["categories"][i]["values"], 0 for a value that is not there."""
        return self.restore(self.prepared(self.standardise(features), codes))


class Columns(Prepared):
    """A transformer over the columns of a row: a vector per feature, an embedding per category."""

    def __init__(self, preparation, tensors, heads=4):
        super().__init__(preparation)
        width, wide = (tensors["encoder.layers.0." + name].shape[0] for name in ("linear2.weight", "linear1.weight"))
        features = tensors["tokens.weight"].shape[0] if "tokens.weight" in tensors else 0
        self.tokens = nn.ParameterDict({name: torch.empty(features, width) for name in ("weight", "bias")} if features else {})
        count = len(preparation["categories"])
        for position in range(count):
            self.add_module(f"embedding{position}", nn.Embedding(*tensors[f"embedding{position}.weight"].shape))
        self.embeddings = [getattr(self, f"embedding{position}") for position in range(count)]
        layer = nn.TransformerEncoderLayer(width, heads, wide, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        layers = sum(key.endswith("linear1.weight") for key in tensors)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, self.outputs)

    def prepared(self, features, codes):
        columns = [features[:, :, None] * self.tokens["weight"] + self.tokens["bias"]] if self.tokens else []
        columns += [embedding(codes[:, place])[:, None] for place, embedding in enumerate(self.embeddings)]
        return self.head(torch.relu(self.encoder(torch.cat(columns, dim=1)).mean(1)))

    def forward(self, features, codes):
        """`codes` as for `Rows`."""
        return self.restore(self.prepared(self.standardise(features), codes))


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with batch normalization, and a shortcut around them."""

    def __init__(self, tensors, name):
        super().__init__()
        filters, channels = tensors[name + "conv1.weight"].shape[:2]
        projected = name + "downsample.0.weight" in tensors
        # The first block of every stage but the first halves the image, and only these blocks have a projection.
        stride = 2 if projected else 1
        self.conv1, self.bn1 = nn.Conv2d(channels, filters, 3, stride, padding=1, bias=False), nn.BatchNorm2d(filters)
        self.conv2, self.bn2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters)
        self.downsample = nn.Identity()
        if projected:
            self.downsample = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, values):
        branch = torch.relu(self.bn1(self.conv1(values)))
        return torch.relu(self.bn2(self.conv2(branch)) + self.downsample(values))


def soft_argmax(maps):
    """x and y of each map's peak, from −1 to 1 across the image: [batch, 2 · maps]."""
    height, width = maps.shape[2:]
    weights = maps.flatten(2).softmax(2).view_as(maps)
    over, down = [(2 * torch.arange(side, device=maps.device) + 1) / side - 1 for side in (width, height)]
    x, y = (weights.sum(2) * over).sum(2), (weights.sum(3) * down).sum(2)
    return torch.stack([x, y], dim=2).flatten(1)


class Pictures(Prepared):
    """A plain CNN (convolutions, each followed by pooling, batch normalization and ReLU), a ResNet, or a U-Net with heatmaps."""

    def __init__(self, preparation, tensors, heads=4):
        super().__init__(preparation)
        self.shape = preparation["shape"]
        self.residual = "layer1.0.conv1.weight" in tensors
        if self.residual:
            self.large = min(self.shape["height"], self.shape["width"]) >= 64
            filters, channels = tensors["conv1.weight"].shape[:2]
            self.conv1 = nn.Conv2d(channels, filters, 3, 2 if self.large else 1, padding=1)
            self.bn1 = nn.BatchNorm2d(filters)
            for stage in ("layer1", "layer2", "layer3", "layer4"):
                count = sum(key.startswith(stage) and key.endswith(".conv1.weight") for key in tensors)
                self.add_module(stage, nn.Sequential(*[BasicBlock(tensors, f"{stage}.{block}.") for block in range(count)]))
        layers = sum(key.startswith("convolutions.") for key in tensors) // 2
        shapes = [tensors[f"convolutions.{layer}.weight"].shape for layer in range(layers)]
        self.convolutions = nn.ModuleList(nn.Conv2d(shape[1], shape[0], 3, padding=1) for shape in shapes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(shape[0]) for shape in shapes)
        self.positions, self.heatmap = "maps_norm.weight" in tensors, "maps.weight" in tensors and "maps_norm.weight" not in tensors
        if self.heatmap:
            ups = [tensors[f"ups.{level}.weight"].shape for level in range(layers - 1)]
            self.ups = nn.ModuleList(nn.Conv2d(shape[1], shape[0], 3, padding=1, bias=False) for shape in ups)
            self.up_norms = nn.ModuleList(nn.BatchNorm2d(shape[0]) for shape in ups)
            filters, channels = tensors["maps.weight"].shape[:2]
            self.maps = nn.Conv2d(channels, filters, 1)
        if self.positions:
            filters, channels = tensors["maps.weight"].shape[:2]
            self.maps, self.maps_norm = nn.Conv2d(channels, filters, 1), nn.BatchNorm2d(filters)
        self.head = nn.Linear(tensors["head.weight"].shape[1], self.outputs)

    def prepared(self, values):
        if self.residual:
            values = self.conv1(values)
            values = torch.relu(self.bn1(nn.functional.max_pool2d(values, 2) if self.large else values))
            values = self.layer4(self.layer3(self.layer2(self.layer1(values))))
        levels = []
        for convolution, norm in zip(self.convolutions, self.norms):
            values = convolution(values)
            if min(values.shape[2:]) >= 2:
                values = nn.functional.max_pool2d(values, 2)
            values = torch.relu(norm(values))
            levels.append(values)
        if self.heatmap:
            for level in reversed(range(len(self.ups))):
                larger = nn.functional.interpolate(values, size=levels[level].shape[2:], mode="nearest")
                values = torch.relu(self.up_norms[level](self.ups[level](torch.cat([larger, levels[level]], dim=1))))
            values = soft_argmax(self.maps(values))
        elif self.positions:
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


def table(preparation, rows):
    """Features and codes of rows: a pandas DataFrame, or anything that gives a column by its name. What is missing is None or NaN; values of
    categories are text as in the files. Policies for missing values other than the mean are left to the caller."""

    def absent(value):
        return value is None or value != value or value == ""

    columns = [[math.nan if absent(value) else float(value) for value in rows[name]] for name in preparation["features"]]
    categories = preparation["categories"]
    codes = []
    for category in categories:
        values = [None if absent(value) else str(value) for value in rows[category["name"]]]
        known = {value: 0 if value is None else code(category, value) for value in set(values)}
        codes.append([known[value] for value in values])
    count = len((columns or codes)[0])
    features = torch.tensor(columns, dtype=torch.float32).T if columns else torch.zeros(count, 0)
    return features, torch.tensor(codes, dtype=torch.long).T if codes else torch.zeros(count, 0, dtype=torch.long)


def spans(before, after):
    """For each target pixel the first source pixel and the weights of those it covers: a triangle as wide as a target pixel."""
    scale = before / after
    support = max(scale, 1.0)
    for target in range(after):
        center = (target + 0.5) * scale
        first, last = max(math.floor(center - support), 0), min(math.ceil(center + support), before)
        raw = [max(1 - abs((at + 0.5 - center) / support), 0.0) for at in range(first, last)]
        # Rounds half up, as flatout does.
        yield first, [math.floor(weight / sum(raw) * (1 << 14) + 0.5) for weight in raw]


def resized(pixels, height, width):
    """Bytes [height, width, channels] in another size, bit for bit as flatout resizes: the mean of the covered pixels where the ratio is whole,
    a triangle filter in integers elsewhere, first across, then down."""
    before = pixels.shape[:2]
    values = pixels.long()
    if tuple(before) == (height, width):
        return pixels
    if before[0] % height == 0 and before[1] % width == 0:
        down, across = before[0] // height, before[1] // width
        sums = values.reshape(height, down, width, across, -1).sum((1, 3))
        return ((sums + down * across // 2) // (down * across)).to(torch.uint8)

    def along(values, after):
        lines = [sum(weight * values[first + place] for place, weight in enumerate(weights)) for first, weights in spans(len(values), after)]
        return ((torch.stack(lines) + (1 << 13)) >> 14).clamp(0, 255)

    across = along(values.transpose(0, 1), width).transpose(0, 1)
    return along(across, height).to(torch.uint8)


def image(preparation, source):
    """Bytes [channels, height, width] as the model takes them: of a file, or of an array [height, width] or [height, width, channels]. PNG files
    become the bytes that flatout reads; decoders of JPEG differ by a level or two."""
    shape = preparation["shape"]
    if isinstance(source, (str, pathlib.Path)):
        import numpy
        from PIL import Image

        opened = Image.open(source)
        gray = opened.mode in ("1", "L", "LA", "I;16")
        source = numpy.array(opened.convert("L" if gray else "RGB"))
    pixels = torch.as_tensor(source, dtype=torch.uint8)
    pixels = pixels[:, :, None] if pixels.dim() == 2 else pixels
    if pixels.shape[2] >= 3 and shape["channels"] == 1:
        red, green, blue = pixels[:, :, :3].long().unbind(2)
        pixels = ((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16).to(torch.uint8)[:, :, None]
    elif pixels.shape[2] < 3:
        pixels = pixels[:, :, :1].expand(-1, -1, shape["channels"])
    return resized(pixels[:, :, : shape["channels"]], shape["height"], shape["width"]).permute(2, 0, 1)


def answers(preparation, outputs):
    """What the outputs of the model mean, by label: numbers (a column per quantile), the probability of yes, or those of the classes."""
    target, found, first = preparation["target"], {}, 0
    labels = target["names"] if target["task"] == "several" else [preparation["label"]]
    for label, head in zip(labels, heads(target)):
        own = outputs[:, first : first + len(head_units(head))]
        first += own.shape[1]
        if head["task"] == "classes":
            found[label] = own.softmax(1)
        elif head["task"] in ("binary", "labels"):
            found[label] = own.sigmoid()
        else:
            found[label] = own
    return found


def load(path=None):
    """The module in evaluation mode, and how its data were prepared. Without a path: of the checkpoint next to this file."""
    path = path or pathlib.Path(__file__).with_suffix(".safetensors")
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        described = file.metadata() or {}
    preparation = json.loads(tensors.pop("flatout.preparation").numpy().tobytes())
    # The optimizer's moments lie beside the weights.
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("optimizer.")}
    rows = Columns if "encoder.norm.weight" in tensors else Rows
    kind = {"sequence": Sequence, "rows": rows, "pictures": Pictures}[preparation["shape"]["kind"]]
    # No tensor tells how many heads an attention has; the settings in the file do.
    heads = re.search(r"num_heads:\D*?(\d+)", described.get("flatout", ""))
    model = kind(preparation, tensors, int(heads[1]) if heads else 4)
    left = model.load_state_dict(tensors, strict=False)
    # PyTorch counts batches of a normalisation; nothing depends on it.
    missing = [name for name in left.missing_keys if not name.endswith("num_batches_tracked")]
    if missing or left.unexpected_keys:
        raise ValueError(f"{path} does not fit: missing {missing}, unexpected {left.unexpected_keys}")
    return model.eval(), preparation


if __name__ == "__main__":
    loaded, prepared = load(*sys.argv[1:2])
    print(loaded)
    target = prepared["target"]
    print(f"{target['task']} of {prepared['label']}:", ", ".join(target["names"][:10]))
