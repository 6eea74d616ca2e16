"""Methods that only index: `__getitem__(self, index)` whose every value is a column of the data set, taken at the index and converted.

The source of the method is interpreted with all indices of a batch at once. What it may contain is chosen so that doing it once to all
rows is doing it to each row: indexing a tensor, an array or a list by the index itself, conversions of a type, arithmetic with numbers,
tuples, lists and dictionaries of such values, conditions that look at the data set only. Anything else is `NotPlain`, when the method is
read or when a batch is fetched.
"""

import ast
import builtins
import operator
import sys

import torch

from _flatout_probe import weave

# What may be called on a batch: the name of a method, and whether arguments are dtypes only.
CONVERSIONS = {"float", "double", "half", "bfloat16", "long", "int", "short", "bool", "to", "type", "astype", "copy", "clone", "contiguous", "item"}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
COMPARED = {ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.Eq: operator.eq, ast.NotEq: operator.ne}


# Columns that are elsewhere now (`resident`): by their id, each with its copy.
moved = None


class NotPlain(Exception):
    pass


class Batch:
    """A value that each sample has one of: a tensor or an array with the samples in its first dimension, or a list."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Method:
    def __init__(self, function):
        code = getattr(function, "__code__", None)
        if code is None or code.co_argcount != 2 or function.__closure__ or code.co_flags & 0xC or hasattr(function, "__wrapped__"):
            raise NotPlain("own-getitem")
        try:
            self.body = definition(code).body
        except (OSError, SyntaxError, ValueError, LookupError):
            raise NotPlain("no-source") from None
        self.scope = function.__globals__
        self.owner, self.index = code.co_varnames[:2]
        check(self.body)

    def run(self, dataset, indices):
        names = {self.owner: dataset, self.index: indices}
        ended, value = Run(names, self.scope, indices).block(self.body)
        if not ended:
            raise NotPlain("own-getitem")
        return value


def definition(code):
    """The function's definition in its file, if that still compiles to the code that is loaded."""
    with open(code.co_filename, "rb") as file:
        tree = ast.parse(file.read())
    found = [compile(tree, code.co_filename, "exec", dont_inherit=True)]
    for one in found:
        found += [part for part in one.co_consts if isinstance(part, type(code))]
    if not any((one.co_name, one.co_firstlineno) == (code.co_name, code.co_firstlineno) and weave.alike(one, code) for one in found):
        raise LookupError(code.co_name)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (node.name, node.lineno) == (code.co_name, code.co_firstlineno):
            return node
    raise LookupError(code.co_name)


# Kinds of nodes that may be there at all.
KNOWN = (ast.Return, ast.Assign, ast.If, ast.Expr, ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Dict, ast.Constant)
KNOWN += (ast.Call, ast.BinOp, ast.Compare, ast.keyword, ast.expr_context, ast.operator, ast.cmpop, ast.UnaryOp, ast.USub, ast.Not, ast.Pass)
KNOWN += (ast.AnnAssign,)


def check(body):
    """Whatever cannot be plain is told before anything is run."""
    for statement in body:
        for node in ast.walk(statement):
            if not isinstance(node, KNOWN):
                raise NotPlain("own-getitem")


class Run:
    def __init__(self, names, scope, indices):
        self.names, self.scope, self.indices = names, scope, indices

    def block(self, body):
        """Whether it returned, and what."""
        for node in body:
            if isinstance(node, ast.Return):
                return True, self.value(node.value)
            if isinstance(node, ast.If):
                ended, value = self.block(node.body if self.condition(node.test) else node.orelse)
                if ended:
                    return True, value
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                self.assign(node.targets[0], self.value(node.value))
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self.assign(node.target, self.value(node.value))
            elif not isinstance(node, ast.Pass) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                raise NotPlain("own-getitem")
        return False, None

    def assign(self, target, value):
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple) and type(value) is tuple and len(value) == len(target.elts):
            for one, part in zip(target.elts, value):
                self.assign(one, part)
        else:
            # Of the data set, say: it would change itself.
            raise NotPlain("changes-itself")

    def condition(self, node):
        """Of the data set, never of its samples."""
        value = self.value(node)
        if value is None or type(value) in (bool, int, float, str):
            return bool(value)
        if callable(value) and not isinstance(value, torch.nn.Module):
            return True
        raise NotPlain("own-getitem")

    def value(self, node):
        if node is None:
            return None
        return getattr(self, "of_" + type(node).__name__, self.unknown)(node)

    def unknown(self, node):
        raise NotPlain("own-getitem")

    def of_Constant(self, node):
        return node.value

    def of_Name(self, node):
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.scope:
            return self.scope[node.id]
        return getattr(builtins, node.id)

    def of_Tuple(self, node):
        return tuple(map(self.value, node.elts))

    def of_List(self, node):
        return list(map(self.value, node.elts))

    def of_Dict(self, node):
        if any(key is None for key in node.keys):
            raise NotPlain("own-getitem")
        return {self.value(key): self.value(value) for key, value in zip(node.keys, node.values)}

    def of_UnaryOp(self, node):
        value = self.value(node.operand)
        if type(value) is Batch or not isinstance(node.op, (ast.USub, ast.Not)):
            raise NotPlain("own-getitem")
        return not value if isinstance(node.op, ast.Not) else -value

    def of_Compare(self, node):
        left, right = self.value(node.left), self.value(node.comparators[0])
        compare = COMPARED.get(type(node.ops[0]))
        if len(node.ops) > 1 or compare is None or type(left) is Batch or type(right) is Batch or right is self.indices or left is self.indices:
            raise NotPlain("own-getitem")
        if isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and not all(type(one) in (int, float, str, bool, type(None)) for one in (left, right)):
            raise NotPlain("own-getitem")
        return compare(left, right)

    def of_Attribute(self, node):
        owner = self.value(node.value)
        if type(owner) is Batch or owner is self.indices:
            raise NotPlain("own-getitem")
        # A property may do anything.
        found = next((vars(cls)[node.attr] for cls in type(owner).__mro__ if node.attr in vars(cls)), None)
        if isinstance(found, property) and not type(owner).__module__.startswith(("torch", "numpy")):
            raise NotPlain("own-property")
        return getattr(owner, node.attr)

    def of_Subscript(self, node):
        owner, at = self.value(node.value), self.value(node.slice)
        if at is self.indices:
            return gather(owner, at)
        if type(owner) in (tuple, list, dict) and type(at) in (int, str):
            return owner[at]
        raise NotPlain("own-getitem")

    def of_BinOp(self, node):
        work, left, right = OPERATORS.get(type(node.op)), self.value(node.left), self.value(node.right)
        batches = [one for one in (left, right) if type(one) is Batch]
        numbers = [one for one in (left, right) if type(one) in (int, float)]
        if work is None or len(batches) + len(numbers) < 2 or any(type(one.value) is list for one in batches):
            raise NotPlain("own-getitem")
        if not batches:
            return work(left, right)
        if len(batches) == 2:
            # Rows of other shapes would be spread over each other's samples.
            if len({tuple(one.value.shape) for one in batches}) > 1 or len({type(one.value) for one in batches}) > 1:
                raise NotPlain("own-getitem")
        return Batch(work(*(one.value if type(one) is Batch else one for one in (left, right))))

    def of_Call(self, node):
        named = {}
        for keyword in node.keywords:
            if keyword.arg != "dtype":
                raise NotPlain("own-getitem")
            named["dtype"] = self.value(keyword.value)
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if type(owner) is Batch:
                return self.converted(owner.value, node.func.attr, list(map(self.value, node.args)), named)
        function, given = self.value(node.func), list(map(self.value, node.args))
        if len(given) == 1 and type(given[0]) is Batch:
            return made(function, given[0].value, named)
        raise NotPlain("calls-a-function")

    def converted(self, value, name, given, named):
        if name not in CONVERSIONS or not all(is_dtype(one) for one in [*given, *named.values()]):
            raise NotPlain("calls-a-function")
        if name == "item":
            if value.ndim != 1:
                raise NotPlain("own-getitem")
            return Batch(value.tolist())
        return Batch(getattr(value, name)(*given, **named))


def is_dtype(value):
    numpy = sys.modules.get("numpy")
    return isinstance(value, torch.dtype) or (numpy is not None and isinstance(value, type) and issubclass(value, numpy.generic)) or value in (int, float, bool)


def made(function, value, named):
    """`int(self.y[index])`, `torch.from_numpy(self.x[index])` and their like."""
    numpy = sys.modules.get("numpy")
    if function in (int, float, bool) and not named:
        listed = value if type(value) is list else value.tolist() if value.ndim == 1 else None
        if listed is None:
            raise NotPlain("own-getitem")
        return Batch([function(one) for one in listed])
    if function in (torch.from_numpy, torch.as_tensor, torch.tensor):
        if type(value) is list and not all(type(one) in (int, float, bool) for one in value):
            raise NotPlain("own-getitem")
        if function is torch.tensor and isinstance(value, torch.Tensor):
            return Batch(value.clone().to(**named) if named else value.clone())
        return Batch(function(value, **named))
    if numpy is not None and function in (numpy.asarray, numpy.array) and type(value) is not list:
        return Batch(function(value, **named))
    raise NotPlain("calls-a-function")


def gather(column, indices):
    """A column's rows at these indices."""
    from . import whole

    if whole.is_column(column):
        if moved and id(column) in moved:
            column = moved[id(column)][1]
        if isinstance(column, torch.Tensor):
            return Batch(column.index_select(0, indices.tensor(column.device)))
        return Batch(column[indices.array()])
    if type(column) in (list, tuple):
        found = [column[index] for index in indices.listed]
        if not all(type(one) in (int, float, str, bool, bytes) for one in found):
            return Batch(stacked(found))
        return Batch(found)
    raise NotPlain("data-kind")


def stacked(rows):
    """A list's rows, each a tensor or an array of one shape."""
    import numpy

    kinds = {(type(row), getattr(row, "dtype", None), tuple(getattr(row, "shape", ()))) for row in rows}
    if len(kinds) != 1:
        raise NotPlain("data-kind")
    if type(rows[0]) is torch.Tensor and not rows[0].requires_grad:
        return torch.stack(rows)
    if type(rows[0]) is numpy.ndarray and rows[0].dtype.kind in "biufc":
        return numpy.stack(rows)
    raise NotPlain("data-kind")
