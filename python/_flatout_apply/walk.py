"""Whether a data set can be read in another process with the same result: by everything that can be reached from it.

Unknown is unsafe: an object of a kind that is not known to survive a fork (an open file shares its position with the workers) keeps the
data set where it is. So do generators of random numbers, code that changes the data set, and code that asks which worker it runs in.
"""

import dis
import functools
import logging
import sys
import types

import torch

from _flatout_probe import places, raw

# More objects than this are not looked at: then nothing is known.
MOST = 50_000
# A longer collection is taken by the kinds of all its items and by its first ones.
LONG = 200
ATOMS = (int, float, complex, str, bytes, bytearray, bool, type(None), type(Ellipsis), range, slice, type, types.ModuleType)
ATOMS += (torch.dtype, torch.device, torch.Size, types.BuiltinFunctionType, types.GetSetDescriptorType, types.MemberDescriptorType)
ATOMS += (types.WrapperDescriptorType, types.MethodDescriptorType, property)
# Libraries whose objects hold data or say what to do with it, and have no open files.
LIBRARIES = ("pathlib", "datetime", "re", "enum", "pandas.", "pyarrow.", "PIL.Image", "collections", "decimal", "fractions", "uuid", "typing", "string")
# A data set of Hugging Face's maps its file into memory; its tokenizers know that they were forked.
LIBRARIES += ("datasets.", "tokenizers.", "torchvision.transforms", "torch.nn.", "torch.utils.data.")
ASKS = {"get_worker_info", "current_process", "active_children", "getpid", "getppid"}
STORES = {"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"}
BEGINNINGS = ("__getitem__", "__getitems__", "__call__", "forward", "__len__")


class Unsafe(Exception):
    """With the reason's code."""


def hazard(*things):
    """Why what these do would not be the same in a worker; None where it would."""
    try:
        Walk().all_of(list(things))
    except Unsafe as reason:
        return str(reason)
    return None


def asks_for_workers(*things):
    """Whether the code asks which worker it runs in, or changes the data set: of data sets that are read by workers already."""
    walk = Walk(code_only=True)
    try:
        walk.all_of(list(things))
    except Unsafe as reason:
        return str(reason)
    return None


class Walk:
    def __init__(self, code_only=False):
        self.seen, self.code_only, self.stack = set(), code_only, []

    def all_of(self, things):
        self.stack = things
        while self.stack:
            thing = self.stack.pop()
            if id(thing) in self.seen:
                continue
            self.seen.add(id(thing))
            if len(self.seen) > MOST:
                raise Unsafe("too-large")
            self.look(thing)

    def look(self, thing):
        kind = type(thing)
        if kind in ATOMS or isinstance(thing, type):
            return
        if kind in (list, tuple, set, frozenset, dict, types.MappingProxyType):
            self.collection(thing)
        elif kind is types.FunctionType:
            self.function(thing)
        elif kind is types.MethodType:
            self.stack += [thing.__self__, thing.__func__]
        elif kind in (staticmethod, classmethod):
            self.stack.append(thing.__func__)
        elif isinstance(thing, functools.partial):
            self.stack += [thing.func, thing.args, thing.keywords]
        elif isinstance(thing, torch.Tensor):
            if thing.device.type != "cpu" and not self.code_only:
                raise Unsafe("data-on-gpu")
        else:
            self.instance(thing, kind)

    def collection(self, thing):
        values = list(thing.values()) if hasattr(thing, "values") else list(thing)
        if len(values) > LONG:
            # All of one kind, mostly.
            kinds = set(map(type, values))
            values = values[:LONG] + [next(value for value in values if type(value) is kind) for kind in kinds]
        self.stack += values

    def function(self, function):
        code = function.__code__
        self.stack += [cell.cell_contents for cell in function.__closure__ or () if filled(cell)]
        self.stack += list(function.__defaults__ or ())
        if places.kind_of(code) == places.USER:
            self.code(code, function.__globals__, None)

    def code(self, code, scope, owner):
        """The user's own code: what it stores, and what it names."""
        for one in codes(code):
            if any(instruction.opname in STORES for instruction in dis.get_instructions(one)):
                raise Unsafe("changes-itself")
            if ASKS & set(one.co_names):
                raise Unsafe("asks-for-worker")
            for name in one.co_names:
                if owner is not None and isinstance(member(owner, name), (types.FunctionType, property, staticmethod, classmethod)):
                    self.method(owner, name)
                elif name in scope:
                    self.stack.append(scope[name])

    def method(self, kind, name):
        found = member(kind, name)
        function = getattr(found, "fget", None) or getattr(found, "__func__", None) or found
        if isinstance(function, types.FunctionType) and (kind, name) not in self.seen:
            self.seen.add((kind, name))
            self.stack += [cell.cell_contents for cell in function.__closure__ or () if filled(cell)]
            if places.kind_of(function.__code__) == places.USER:
                self.code(function.__code__, function.__globals__, kind)

    def instance(self, thing, kind):
        module = kind.__module__ or ""
        if module == "numpy":
            if kind.__name__ in ("ndarray", "memmap") and thing.dtype.kind == "O":
                self.stack.append(thing.reshape(-1)[:LONG].tolist())
            return
        if is_generator(thing, module) and not self.code_only:
            raise Unsafe("own-generator")
        # Loggers renew their locks in a forked process.
        if module.startswith("numpy.") or isinstance(thing, logging.Logger):
            return
        own = raw.fields(thing)
        known = module.startswith(LIBRARIES) or module + "." in LIBRARIES
        if not known and not self.code_only and not is_python(kind):
            raise Unsafe("open-file" if is_file(thing) else "unknown-kind")
        # What libraries hold inside is their own, except for data sets and transforms, which hold the program's.
        if not known or module.startswith(("torch.", "torchvision.")):
            self.stack.append(own)
            for name in BEGINNINGS:
                self.method(kind, name)


def codes(code):
    found = [code]
    for one in found:
        found += [part for part in one.co_consts if isinstance(part, types.CodeType)]
    return found


def member(kind, name):
    return next((vars(cls)[name] for cls in kind.__mro__ if name in vars(cls)), None)


def filled(cell):
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def is_generator(thing, module):
    import random

    return isinstance(thing, (torch.Generator, random.Random)) or module.startswith("numpy.random") or (module == "random" and not isinstance(thing, type))


def is_python(kind):
    """Whether the class, and all it comes from, is written in Python: then its instances hold nothing but what can be looked at."""
    return all(cls is object or cls.__module__ in ("typing", "abc", "__main__") or (is_source(cls.__module__) and not is_c(cls)) for cls in kind.__mro__)


def is_c(cls):
    """A class of an extension names the module that shows it: a connection of sqlite3 is no Python."""
    slots = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType)
    return any(isinstance(value, slots) and value.__objclass__ is cls for value in vars(cls).values())


def is_source(module):
    return str(getattr(sys.modules.get(module), "__file__", None)).endswith(".py")


def is_file(thing):
    import io

    return isinstance(thing, io.IOBase) or type(thing).__module__.split(".")[0] in ("zipfile", "tarfile", "h5py", "lmdb", "sqlite3", "mmap", "socket")
