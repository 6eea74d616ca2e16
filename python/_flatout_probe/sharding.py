"""Whether the workers of a loader share an `IterableDataset` among them: by the code that can be reached from it, none of which runs.

A data set that never asks which worker it runs in gives all of its samples in every worker.
"""

from __future__ import annotations

import functools
import types
from itertools import islice

from . import raw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

# What code calls that takes its worker's part: of torch, and of data pipes that are split by torch itself.
ASKS = {"get_worker_info", "apply_sharding"}
# More objects than this are not looked at: then nothing is known.
MOST = 2000
# Of a list or a dictionary, the first items.
LONG = 50
# Kinds that hold data only.
DATA = ("builtins", "numpy", "pandas", "pyarrow", "torch.nn.")


def is_shared(*things: Any) -> bool | None:
    """Whether some code of these asks for its worker; None where there is too much to look at."""
    left, seen = list(things), set()
    # What is nearest comes first: behind a library's data set are thousands of objects.
    for thing in left:
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if len(seen) > MOST:
            return None
        if type(thing) is types.CodeType:
            if ASKS & {*thing.co_names, thing.co_name}:
                return True
            left += [part for part in thing.co_consts if type(part) is types.CodeType]
        else:
            left += reached(thing)
    return False


def reached(thing: Any) -> list[Any]:
    kind = type(thing)
    if kind is types.FunctionType:
        return [thing.__code__, *named(thing), *cells(thing)]
    if kind is types.MethodType:
        return [thing.__self__, thing.__func__]
    if kind in (staticmethod, classmethod):
        return [thing.__func__]
    if kind is property:
        return [thing.fget]
    if kind is functools.partial:
        return [thing.func, *thing.args]
    if kind in (list, tuple):
        return list(thing[:LONG])
    if kind is dict:
        return list(islice(thing.values(), LONG))
    if is_class(thing):
        return methods(thing)
    if raw.is_tensor(thing) or str(type.__getattribute__(kind, "__module__")).startswith(DATA):
        return []
    return [kind, *islice(raw.fields(thing).values(), LONG)]


def named(function: Any) -> Iterator[Any]:
    """What its code names of its module: functions and classes."""
    scope = function.__globals__
    for name in function.__code__.co_names:
        found = scope.get(name)
        if type(found) is types.FunctionType or is_class(found):
            yield found


def cells(function: Any) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            pass


def is_class(thing: Any) -> bool:
    return type in type.__getattribute__(type(thing), "__mro__")


def methods(cls: type) -> list[Any]:
    """Functions of a class and those it comes from. Torch's own data sets hand on what they are given, or are split by torch."""
    found: list[Any] = []
    for one in type.__getattribute__(cls, "__mro__"):
        own, module = type.__getattribute__(one, "__dict__"), str(type.__getattribute__(one, "__module__"))
        if module.startswith("torch.utils.data."):
            found += [value for name, value in own.items() if name in ASKS]
            continue
        if module in ("builtins", "typing", "abc"):
            continue
        found += [value for value in own.values() if type(value) in (types.FunctionType, staticmethod, classmethod, property)]
    return found
