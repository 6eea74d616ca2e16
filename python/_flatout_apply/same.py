"""Whether two batches are the same: types, structure, dtypes, strides and every bit."""

from __future__ import annotations

import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return same_tensor(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if type(one).__module__ == "numpy":
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if hasattr(one, "data") and isinstance(one.data, dict):
        # As transformers' batches.
        return same(one.data, other.data)
    # A float that is not a number equals nothing, itself included.
    return one == other or (one != one and other != other)


def same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    alike = one.dtype == other.dtype and one.shape == other.shape and one.device == other.device and one.layout == other.layout
    if not alike or one.requires_grad != other.requires_grad or one.layout != torch.strided or one.stride() != other.stride():
        return False
    return torch.equal(bits(one), bits(other))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8) if flat.numel() else flat.to(torch.uint8)
