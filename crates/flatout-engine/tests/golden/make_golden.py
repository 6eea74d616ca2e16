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
            return loss(y, inputs), {"prediction": y}  # noqa: B023

        record(name, model, inputs, compute)


def terms():
    """Several targets with a loss and a weight each; labels and weights come as the bits of floats."""
    torch.manual_seed(6)
    model = nn.ModuleDict({"one": nn.Linear(3, 13)})
    labels = torch.randn(4, 8).float().double()
    labels[:, 5] = torch.tensor([0.0, 1.0, 1.0, 0.0])
    labels[:, 6] = torch.tensor([0.0, 2.0, 1.0, 1.0])
    labels[:, 7] = torch.tensor([2.0, 0.0, 0.0, 1.0])
    weights = (0.5 + torch.rand(4, 8)).float().double()
    weights[1, 2] = 0.0
    words = torch.cat([labels, weights], 1).float().view(torch.int32)
    inputs = {"x": 3 * torch.randn(4, 3), "words": words}

    def focal(entropy, gamma):
        return (1 - torch.exp(-entropy)) ** gamma * entropy

    def compute(model, inputs):
        y = model["one"](inputs["x"])
        label = lambda column: labels[:, column]
        pinball = lambda p, t, q: torch.maximum(q * (t - p), (q - 1) * (t - p))
        binary = F.binary_cross_entropy_with_logits(y[:, 6], label(5), reduction="none")
        classes = F.cross_entropy(y[:, 10:13], label(7).long(), reduction="none")
        each = [
            (0.5, 0, (y[:, 0] - label(0)) ** 2),
            (0.5, 1, (y[:, 1] - label(1)) ** 2),
            (0.7, 2, (y[:, 2] - label(2)).abs()),
            (0.6, 3, F.huber_loss(y[:, 3], label(3), delta=0.7, reduction="none")),
            (0.3, 4, pinball(y[:, 4], label(4), 0.1)),
            (0.3, 4, pinball(y[:, 5], label(4), 0.9)),
            (0.9, 5, focal(binary, 2.0)),
            (0.8, 6, F.cross_entropy(y[:, 7:10], label(6).long(), label_smoothing=0.1, reduction="none")),
            (1.1, 7, focal(classes, 1.5)),
        ]
        loss = sum(share * (weights[:, column] * value).mean() for share, column, value in each)
        return loss, {"prediction": y}

    record("terms", model, inputs, compute)


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


def causal(x, layer, dilation):
    """A causal convolution over time-major `[steps, batch, channels]`."""
    x = F.pad(x.permute(1, 2, 0), ((layer.kernel_size[0] - 1) * dilation, 0))
    return F.conv1d(x, layer.weight, layer.bias, dilation=dilation).permute(2, 0, 1)


def conv1d():
    """Every step with a dilation; then every second step from the last, with a projected and a plain residual."""
    model = nn.ModuleDict({"one": nn.Conv1d(4, 5, 3), "two": nn.Conv1d(5, 5, 2), "three": nn.Conv1d(5, 5, 3), "down": nn.Conv1d(4, 5, 1), "head": nn.Linear(5, 2)})

    def compute(model, inputs):
        x = inputs["x"]
        y = torch.tanh(causal(x, model["one"], 2))
        y = torch.relu(causal(y, model["two"], 1) + causal(x, model["down"], 1))
        y = y.flip(0)[::2].flip(0)
        y = torch.relu(causal(y, model["three"], 1) + y)[-1]
        y = model["head"](y)
        return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

    inputs = {"x": torch.randn(7, 3, 4), "target": torch.randn(3, 2)}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    record("conv1d", model, inputs, compute, steps=4, optimizer=optimizer)


class Bidirectional(nn.Module):
    """Both directions, two layers; the head reads each direction's state when it has read everything."""

    def __init__(self, cell):
        super().__init__()
        self.embedding = nn.Embedding(4, 2)
        self.rnn = cell(3 + 2, 5, 2, bidirectional=True)
        self.head = nn.Linear(10, 1)

    def forward(self, x, entity):
        beside = self.embedding(entity).unsqueeze(0).expand(x.shape[0], -1, -1)
        states, _ = self.rnn(torch.cat([x, beside], dim=2))
        return self.head(torch.cat([states[-1, :, :5], states[0, :, 5:]], dim=1))


def bidirectional():
    for name, cell in (("bidirectional_lstm", nn.LSTM), ("bidirectional_gru", nn.GRU)):
        torch.manual_seed(11)
        model = Bidirectional(cell)

        def compute(model, inputs):
            y = model(inputs["x"], inputs["entity"])
            return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

        inputs = {"x": torch.randn(6, 4, 3), "entity": torch.tensor([0, 3, 3, 1]), "target": torch.randn(4, 1)}
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        record(name, model, inputs, compute, steps=3, optimizer=optimizer)


def resnet():
    """A basic block with a projected shortcut and one without; images channels-last."""
    model = nn.ModuleDict(
        {
            "conv1": nn.Conv2d(2, 4, 3, stride=2, padding=1, bias=False),
            "bn1": nn.BatchNorm2d(4),
            "conv2": nn.Conv2d(4, 4, 3, padding=1, bias=False),
            "bn2": nn.BatchNorm2d(4),
            "down": nn.Conv2d(2, 4, 1, stride=2, bias=False),
            "bn3": nn.BatchNorm2d(4),
            "conv3": nn.Conv2d(4, 4, 3, padding=1, bias=False),
            "bn4": nn.BatchNorm2d(4),
            "head": nn.Linear(4, 2),
        }
    )

    def compute(model, inputs):
        x = inputs["x"].permute(0, 3, 1, 2)
        y = torch.relu(model["bn1"](model["conv1"](x)))
        y = torch.relu(model["bn2"](model["conv2"](y)) + model["bn3"](model["down"](x)))
        y = torch.relu(model["bn4"](model["conv3"](y)) + y)
        y = model["head"](y.mean(dim=(2, 3)))
        return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

    inputs = {"x": torch.randn(3, 7, 6, 2), "target": torch.randn(3, 2)}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    record("resnet", model, inputs, compute, steps=4, optimizer=optimizer)


def heatmap():
    """An upsampling joined with an image of another size, and the positions of peaks; images channels-last."""
    model = nn.ModuleDict({"one": nn.Conv2d(2, 4, 3, padding=1), "two": nn.Conv2d(6, 3, 3, padding=1), "head": nn.Linear(6, 2)})

    def compute(model, inputs):
        x = inputs["x"].permute(0, 3, 1, 2)
        small = F.max_pool2d(torch.tanh(model["one"](x)), 2)
        large = F.interpolate(small, size=x.shape[2:], mode="nearest")
        maps = model["two"](torch.cat([large, x], dim=1))
        height, width = maps.shape[2:]
        weights = maps.flatten(2).softmax(2).view_as(maps)
        over, down = [(2 * torch.arange(side) + 1) / side - 1 for side in (width, height)]
        positions = torch.stack([(weights.sum(2) * over).sum(2), (weights.sum(3) * down).sum(2)], dim=2).flatten(1)
        y = model["head"](positions)
        return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

    inputs = {"x": torch.randn(3, 7, 9, 2), "target": torch.randn(3, 2)}
    # A map's bias has no gradient but rounding, which Adam blows up.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    record("heatmap", model, inputs, compute, steps=4, optimizer=optimizer)


class Encoder(nn.Module):
    """A pre-norm encoder over a window with an entity's embedding next to every step, the mean over the steps, a linear head."""

    def __init__(self, width=8, heads=2, layers=2, steps=5):
        super().__init__()
        self.embedding = nn.Embedding(4, 2)
        self.input = nn.Linear(3 + 2, width)
        self.positions = nn.Parameter(torch.randn(steps, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        for parameter in self.encoder.parameters():
            # The layers start as copies of each other, weights of norms as ones: nothing would tell them apart.
            nn.init.normal_(parameter, 0.1, 0.4)
        self.head = nn.Linear(width, 1)

    def forward(self, x, entity):
        beside = self.embedding(entity).unsqueeze(0).expand(x.shape[0], -1, -1)
        x = self.input(torch.cat([x, beside], dim=2)) + self.positions[:, None]
        return self.head(self.encoder(x).mean(0))


def transformer():
    model = Encoder()

    def compute(model, inputs):
        y = model(inputs["x"], inputs["entity"])
        return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

    inputs = {"x": torch.randn(5, 4, 3), "entity": torch.tensor([0, 3, 3, 1]), "target": torch.randn(4, 1)}
    # A key's bias has no gradient but rounding, which Adam blows up.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    record("transformer", model, inputs, compute, steps=4, optimizer=optimizer)


class Columns(nn.Module):
    """A vector per feature and per category, one encoder layer over them, the mean, ReLU, a linear head."""

    def __init__(self, features=3, width=4, heads=2):
        super().__init__()
        self.tokens = nn.ParameterDict({name: torch.randn(features, width) for name in ("weight", "bias")})
        self.embedding = nn.Embedding(5, width)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, activation="gelu", norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        for parameter in self.encoder.parameters():
            nn.init.normal_(parameter, 0.1, 0.4)
        self.head = nn.Linear(width, 2)

    def forward(self, x, code):
        columns = x.T[:, :, None] * self.tokens["weight"][:, None] + self.tokens["bias"][:, None]
        columns = torch.cat([columns, self.embedding(code)[None]])
        return self.head(torch.relu(self.encoder(columns).mean(0)))


def columns():
    model = Columns()

    def compute(model, inputs):
        y = model(inputs["x"], inputs["code"])
        return F.mse_loss(y, inputs["target"].detach()), {"prediction": y}

    inputs = {"x": torch.randn(4, 3), "code": torch.tensor([0, 3, 3, 1]), "target": torch.randn(4, 2)}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    record("columns", model, inputs, compute, steps=4, optimizer=optimizer)


if __name__ == "__main__":
    for maker in [linear, optimizers, lstm, gru, losses, cnn, conv1d, bidirectional, resnet, heatmap, transformer, columns, terms]:
        seeded(maker)
