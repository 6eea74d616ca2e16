"""What is known of the program's objects without running any of its code: instance dictionaries and types, never attributes, `len()` or
iteration of a class that the program may have written."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

_tensor: Any = None
_parameter: Any = None
_base: Any = None
_function: Any = None
_off: Any = None
_plain: dict[type, bool] = {}
# A tensor's class that has one of these of its own is left alone.
_OWN = {"__torch_dispatch__", "__getattribute__", "__getattr__", "shape", "dtype", "device"}
_OWN |= {"numel", "element_size", "dim", "is_contiguous", "is_pinned"}


def learn(torch: Any) -> None:
    global _tensor, _parameter, _base, _function, _off
    _function = getattr(torch._C, "_FunctionBase", None)
    _tensor, _parameter, _base, _off = torch.Tensor, torch.nn.Parameter, torch._C.TensorBase, torch._C.DisableTorchFunction


def fields(thing: object) -> dict[str, Any]:
    """The instance's own dictionary; an empty one where it has none."""
    try:
        found = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def name_of(cls: type) -> str:
    return type.__getattribute__(cls, "__name__")


def is_a(thing: object, cls: type) -> bool:
    """As `isinstance`, which would ask the object for its `__class__`."""
    return cls in type.__getattribute__(type(thing), "__mro__")


def is_tensor(thing: object) -> bool:
    """Whether it is a tensor whose shape and the like can be read without `__torch_dispatch__` of the program's."""
    kind = type(thing)
    known = _plain.get(kind)
    if known is None:
        mro = type.__getattribute__(kind, "__mro__")
        above = mro[: mro.index(_tensor)] if _tensor in mro else ()
        known = _tensor in mro and not any(_OWN & type.__getattribute__(cls, "__dict__").keys() for cls in above)
        if len(_plain) < 10_000:
            _plain[kind] = known
    return known


def without_functions() -> Any:
    """Within it no `__torch_function__`, of a class or of a mode, sees what is read."""
    return _off()


def items(value: Any) -> Sequence[Any] | None:
    """What a batch or another collection of Python's own kinds holds; None for any other object."""
    kind = type(value)
    if kind is list or kind is tuple:
        return value
    mro = type.__getattribute__(kind, "__mro__")
    if tuple in mro:
        return tuple.__getitem__(value, slice(None))
    if list in mro:
        return list.__getitem__(value, slice(None))
    if dict in mro:
        return list(dict.values(value))
    for cls in mro:
        if cls.__module__ == "collections" and name_of(cls) == "UserDict":
            # As transformers' batches.
            return items(fields(value).get("data"))
    return None


def shape(value: Any) -> Any:
    """The shape of a tensor or a NumPy array; None for anything else."""
    if is_tensor(value):
        return _base.shape.__get__(value)
    kind = type(value)
    return value.shape if kind.__module__ == "numpy" and kind.__name__ == "ndarray" else None


def batch_size(batch: Any) -> int:
    """Samples in a batch: the first dimension of the first tensor in it."""
    with _off():
        return first_dimension(batch, 0)


def first_dimension(batch: Any, depth: int) -> int:
    found = shape(batch)
    if found is not None:
        return int(found[0]) if len(found) else 0
    inside = items(batch) if depth <= 3 else None
    for item in inside[:8] if inside else ():
        size = first_dimension(item, depth + 1)
        if size:
            return size
    return len(inside) if inside and type(inside[0]) in (str, bytes, int, float) else 0


def tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    """The tensors in a batch. Within `without_functions` only."""
    if is_tensor(value):
        yield value
    elif depth < 4:
        for item in (items(value) or ())[:64]:
            yield from tensors(item, depth + 1)


def modules(module: Any, seen: dict[int, Any] | None = None) -> list[Any]:
    """A module and those in it, each once."""
    seen = {} if seen is None else seen
    if module is not None and id(module) not in seen:
        seen[id(module)] = module
        for child in (items(fields(module).get("_modules")) or ()):
            modules(child, seen)
    return list(seen.values())


def parameters(module: Any) -> list[Any]:
    """Its parameters, each once."""
    found = {}
    for part in modules(module):
        for parameter in items(fields(part).get("_parameters")) or ():
            if parameter is not None and is_tensor(parameter):
                found[id(parameter)] = parameter
    return list(found.values())


def optimized(optimizer: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """An optimizer's groups of parameters, and the parameters."""
    groups = [group for group in items(fields(optimizer).get("param_groups")) or () if type(group) is dict]
    return groups, [parameter for group in groups for parameter in items(group.get("params")) or () if is_tensor(parameter)]


def producer(tensor: Any) -> Any:
    """The node of autograd's graph that a tensor came from; None of a leaf."""
    return _base.grad_fn.__get__(tensor)


def version(tensor: Any) -> int:
    """How often it was written in place."""
    return _base._version.__get__(tensor)


def gradient(tensor: Any) -> Any:
    return _base.grad.__get__(tensor)


def is_python_function(kind: type) -> bool:
    """Whether a node's class is a `torch.autograd.Function`, which may be the program's own."""
    return _function in type.__getattribute__(kind, "__mro__")


def next_of_python(node: Any) -> Any:
    return _function.next_functions.__get__(node)


def given_by(node: Any) -> Any:
    """Shape and dtype of each value that an operator gave; None where this PyTorch does not keep them."""
    if node is None:
        return None
    if is_python_function(type(node)):
        read = getattr(_function, "_input_metadata", None)
        return read.__get__(node) if read is not None else None
    return getattr(node, "_input_metadata", None)


def named(value: Any, name: str) -> Any:
    """What a mapping of Python's own kinds, or one of transformers', has under a name; None for any other object."""
    mro = type.__getattribute__(type(value), "__mro__")
    if dict in mro:
        return dict.get(value, name)
    for cls in mro:
        if cls.__module__ == "collections" and name_of(cls) == "UserDict":
            inside = fields(value).get("data")
            return dict.get(inside, name) if type(inside) is dict else None
    return None
