"""Operations per step out of autograd's graph, and what batches contain."""

import pytest

from conftest import need

torch = need("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from _flatout_probe import arithmetic, contents, raw  # noqa: E402


@pytest.fixture(autouse=True)
def learned():
    raw.learn(torch)
    contents.install(torch)


class Attention(nn.Module):
    """As separate operators, or fused."""

    def __init__(self, way):
        super().__init__()
        self.inputs, self.way = nn.Linear(32, 96), way

    def forward(self, x):
        q, k, v = self.inputs(x).view(2, 16, 3, 4, 8).permute(2, 0, 3, 1, 4)
        if self.way == "manual":
            return functional.dropout((q @ k.transpose(-2, -1) / 3).softmax(-1), 0.1) @ v
        if self.way == "math":
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                return functional.scaled_dot_product_attention(q, k, v)
        return functional.scaled_dot_product_attention(q, k, v)


class First(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


MODELS = {
    "linear": (lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), (8, 16)),
    "no bias, three dimensions": (lambda: nn.Linear(16, 32, bias=False), (8, 5, 16)),
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 8, 1)), (4, 3, 16, 16)),
    "transposed": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(8, 4, 4, stride=2)), (4, 3, 16, 16)),
    "one dimension": (lambda: nn.Conv1d(3, 8, 5), (4, 3, 64)),
    "encoder": (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (2, 16, 32)),
    "GRU": (lambda: First(nn.GRU(8, 16, 2, batch_first=True)), (4, 5, 8)),
    "manual": (lambda: Attention("manual"), (2, 16, 32)),
    "math": (lambda: Attention("math"), (2, 16, 32)),
}


def counted(model, shape):
    found = arithmetic.Sum()
    arithmetic.add(found, [model(torch.randn(shape)).sum().grad_fn])
    return found


@pytest.mark.parametrize("name", MODELS)
def test_counts_as_the_dispatcher_does(name):
    make, shape = MODELS[name]
    model = make()
    with FlopCounterMode(display=False) as mode:
        model(torch.randn(shape)).sum().backward()
    found = counted(model, shape)
    assert found.whole and sum(found.flops.values()) == mode.get_total_flops()


def test_depthwise_convolutions_count_their_own_channels():
    found = counted(nn.Sequential(nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, groups=8, padding=1)), (2, 8, 4, 4))
    positions = 2 * 4 * 4
    first, depthwise = 2 * positions * 8 * 8, 2 * positions * 8 * 9
    # The input has no gradient: forward and the weight's gradient.
    assert sum(found.flops.values()) == first * 2 + depthwise * 3


def test_fused_attention_counts_like_the_separate_one():
    one, other = counted(Attention("fused"), (2, 16, 32)), counted(Attention("math"), (2, 16, 32))
    assert sum(one.flops.values()) == sum(other.flops.values())
    assert (one.unfused, other.unfused, other.math, other.tokens) == (0, 1, 1, 16)
    manual = counted(Attention("manual"), (2, 16, 32))
    assert (manual.unfused, manual.math) == (1, 0)


def test_lstm_counts_its_weights():
    found = counted(First(nn.LSTM(8, 16, 1, batch_first=True)), (4, 5, 8))
    assert sum(found.flops.values()) == 3 * 2 * 4 * 5 * (64 * 8 + 64 * 16)


def test_a_function_in_python_makes_it_a_lower_bound():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    layer = nn.Linear(4, 4)
    found = arithmetic.Sum()
    arithmetic.add(found, [Twice.apply(layer(torch.ones(2, 4))).sum().grad_fn])
    assert not found.whole and sum(found.flops.values()) == 2 * 2 * 2 * 4 * 4


def looked_at(batches, iterable=False):
    """What is told after eight batches."""
    told = {}
    contents_of, before = contents.Contents(iterable), contents.clock.fact
    contents.clock.fact = lambda key, value, scope=None, place=None: told.update({key: value})
    try:
        for batch in batches:
            contents.look(contents_of, batch, "loader.0")
    finally:
        contents.clock.fact = before
    return told


def padded(lengths, width, pad=0):
    rows = [list(range(5, 5 + length)) + [pad] * (width - length) for length in lengths]
    return torch.tensor(rows)


def test_padding_by_the_mask():
    ids = padded([4, 8, 12, 16], 32)
    told = looked_at([{"input_ids": ids, "attention_mask": (ids != 0).long()}] * 8)
    assert told["padding.share"] == pytest.approx(1 - 40 / 128) and told["padding.mask"] is True
    assert told["padding.trim"] == pytest.approx(0.5)


@pytest.mark.parametrize("pad", [0, 1, 50256])
def test_padding_by_what_rows_end_with(pad):
    told = looked_at([(padded([4, 8, 12, 16], 32, pad), torch.ones(4))] * 8)
    assert told["padding.share"] == pytest.approx(1 - 40 / 128) and told["padding.mask"] is False


def test_tokens_without_padding_have_none():
    told = looked_at([torch.randint(0, 50, (8, 32)) for _ in range(8)])
    assert told.get("padding.share", 0) < 0.05
    assert "padding.share" not in looked_at([torch.randn(8, 32)] * 8)


def test_flags_and_counts_are_no_padding():
    torch.manual_seed(0)
    flags = torch.randint(0, 2, (8, 32))
    flags[:, 20:] = 0
    counts = torch.poisson(torch.full((8, 32), 0.8)).long()
    for batch in (flags, counts):
        assert "padding.share" not in looked_at([(torch.randn(8, 4), batch)] * 8)


def test_samples_that_come_again():
    rows = torch.randn(64, 16)
    both = [rows[8 * (index // 2) : 8 * (index // 2) + 8] for index in range(8)]
    assert looked_at(both, iterable=True)["loader.repeated"] == 0.5
    once = [rows[8 * index : 8 * index + 8] for index in range(8)]
    assert looked_at(once, iterable=True)["loader.repeated"] == 0
    # Rows that are alike within a batch prove nothing.
    assert "loader.repeated" not in looked_at([torch.ones(8, 16)] * 8, iterable=True)


def test_shapes_without_the_number_of_samples():
    told = looked_at([torch.randn(8 - index % 2, 3, 16 + index // 2) for index in range(8)])
    assert told["input.shapes"] == 4


def test_tensors_elsewhere_are_left_alone():
    assert looked_at([torch.empty(4, 32, dtype=torch.long, device="meta")] * 8)["input.shapes"] == 1


def test_dense_gradients_of_tables_are_told_and_sparse_ones_are_not():
    ids = torch.tensor([[1, 2, 3], [1, 5, 7]])

    def looked_up(**options):
        found = arithmetic.Sum()
        arithmetic.add(found, [nn.Embedding(100, 8, **options)(ids).sum().grad_fn])
        return found.table, found.looked_up

    assert looked_up() == (800, 48)
    assert looked_up(sparse=True) == (0, 0)
