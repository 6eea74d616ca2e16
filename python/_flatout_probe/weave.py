"""Hooks inside torch's own Python functions.

A wrapper shows: in tracebacks, in the location of warnings, in `inspect`, in pickles. So the function object stays what it is and only
gets another `__code__`: its own source, compiled again with calls to the hooks added. Every line keeps its number and its columns, and
no frame is added around what the program calls. The source is used only if it compiles to exactly the code that is loaded.

The hooks are reached through a constant of the code, so torch's modules get no new names. Functions that the compiler may trace ask
`torch.compiler.is_dynamo_compiling` first, which it folds away together with the call.
"""

import __future__
import ast
import dis

_MARK = "\0flatout"
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_COMPILING = "torch.compiler.is_dynamo_compiling()"
# A statement may go on for this many lines after the last one that has code.
_TAIL = 40
_files = {}
# What is woven, by the function's qualified name.
known = {}


class Woven:
    """A function with hooks. `raw` is a copy without them."""

    __slots__ = ("function", "plain", "hooked", "raw", "enter", "leave", "fail", "argument", "instead")

    def rest(self):
        """Takes the hooks out."""
        self.function.__code__ = self.plain

    def wake(self):
        """Puts the hooks in."""
        self.function.__code__ = self.hooked


def weave(function, names=("self",), enter=None, leave=None, fail=None, inside=None, argument_of=None, argument=None, instead_of=None, instead=None, traced=False):
    """Adds hooks to a Python function and gives its `Woven`; None where its source is not what is loaded.

    `enter(*names)` is called first, `leave(*names, value)` with the value of each `return` gives the value that is returned,
    `fail(*names)` is called when an error passes, with the error in `sys.exc_info()`. `argument(value)` gives the first argument of every
    call to an attribute named `argument_of`. `instead(object)` is called instead of a method `instead_of` of an object. `inside` names an inner function that gets the hooks instead.
    """
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    try:
        tree = parse(code)
        if not alike(compiled(tree, code), code):
            return None
        weaver = Weaver(names, enter, leave, fail, inside or code.co_name, argument_of, instead_of, traced)
        woven = Woven()
        woven.enter, woven.leave, woven.fail = enter, leave, fail
        woven.argument, woven.instead = argument, instead
        hooked = compiled(ast.fix_missing_locations(weaver.visit(tree)), code)
        woven.function, woven.plain, woven.hooked = function, code, with_hooks(hooked, woven)
        woven.raw = type(function)(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        woven.raw.__kwdefaults__ = function.__kwdefaults__
    except (OSError, SyntaxError, ValueError, LookupError, StopIteration):
        return None
    woven.wake()
    known[function.__qualname__] = woven
    return woven


def parse(code):
    """The function's definition, alone in its file or in its class, at its own lines and columns."""
    lines = _files.get(code.co_filename)
    if lines is None:
        with open(code.co_filename, encoding="utf-8") as file:
            lines = _files[code.co_filename] = file.readlines()
    first = code.co_firstlineno
    text = lines[first - 1]
    owner = owner_of(code, lines) if text[:1].isspace() else None
    last = max(last_line(code), first)
    for end in range(last, last + _TAIL):
        try:
            source = "".join(lines[first - 1 : end])
            tree = ast.parse("class %s:\n%s" % (owner, source) if owner else source)
        except SyntaxError:
            continue
        ast.increment_lineno(tree, first - 2 if owner else first - 1)
        tree.body[:0] = imports(lines)
        return tree
    raise LookupError(code.co_name)


def imports(lines):
    """The file's own imports: since Python 3.11 a call through a name that is imported compiles to other instructions."""
    found, rows = [], iter(lines)
    for line in rows:
        if line.startswith(("import ", "from ")) and "__future__" not in line:
            while "(" in line and ")" not in line or line.endswith("\\\n"):
                line += next(rows)
            found.append(line)
    return ast.parse("".join(found)).body


def owner_of(code, lines):
    """The class around the function: the nearest one above that is indented less."""
    indent = len(lines[code.co_firstlineno - 1]) - len(lines[code.co_firstlineno - 1].lstrip())
    for line in reversed(lines[: code.co_firstlineno - 1]):
        if line.startswith("class ", len(line) - len(line.lstrip())) and len(line) - len(line.lstrip()) < indent:
            return line.split()[1].partition("(")[0].partition("[")[0].rstrip(":")
    raise LookupError(code.co_name)


def last_line(code):
    found = [line for _, line in dis.findlinestarts(code) if line]
    return max(found + [last_line(inner) for inner in code.co_consts if isinstance(inner, type(code))], default=0)


def compiled(tree, code):
    """The function's code as this tree has it."""
    found = compile(tree, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    while True:
        inner = [part for part in found.co_consts if isinstance(part, type(code))]
        same = [part for part in inner if part.co_name == code.co_name and part.co_firstlineno == code.co_firstlineno]
        if same:
            return same[0]
        found = next(part for part in inner if part.co_firstlineno <= code.co_firstlineno)


def alike(one, other):
    """Whether two codes do the same."""
    if (one.co_code, one.co_names, one.co_varnames, one.co_freevars) != (other.co_code, other.co_names, other.co_varnames, other.co_freevars):
        return False
    pairs = list(zip(one.co_consts, other.co_consts))
    same = all(alike(a, b) if isinstance(a, type(one)) and isinstance(b, type(one)) else a == b for a, b in pairs)
    return same and len(one.co_consts) == len(other.co_consts)


def with_hooks(code, woven):
    put = {_MARK: woven}
    consts = [
        with_hooks(part, woven) if isinstance(part, type(code)) else put.get(part, part) if isinstance(part, str) else part
        for part in code.co_consts
    ]
    return code.replace(co_consts=tuple(consts))


class Weaver(ast.NodeTransformer):
    def __init__(self, names, enter, leave, fail, target, argument_of, instead_of, traced):
        self.names, self.enter, self.leave, self.fail = names, enter, leave, fail
        self.target, self.argument_of, self.instead_of, self.traced = target, argument_of, instead_of, traced
        self.within = False

    def call(self, hook, near, *more):
        """`hook(*names, *more)`, where this node is."""
        names = [] if hook in ("argument", "instead") else [ast.Name(name, ast.Load()) for name in self.names]
        made = ast.Call(ast.Attribute(ast.Constant(_MARK), hook, ast.Load()), [*names, *more], [])
        return located(made, near)

    def unless_traced(self, made, near):
        """The call as a statement that the compiler does not see."""
        if self.traced:
            made = ast.BoolOp(ast.Or(), [ast.parse(_COMPILING, mode="eval").body, made])
        return located(ast.Expr(made), near)

    def visit_FunctionDef(self, node):
        if self.within:
            return node
        if node.name != self.target:
            return self.generic_visit(node)
        self.within = True
        docs = isinstance(node.body[0], ast.Expr) and isinstance(getattr(node.body[0], "value", None), ast.Constant)
        head, body = node.body[:1] if docs else [], node.body[1:] if docs else node.body
        body = [self.visit(part) for part in body]
        first, last = body[0], body[-1]
        if self.leave and not isinstance(last, (ast.Return, ast.Raise)):
            body.append(self.visit_Return(located(ast.Return(None), last)))
        if self.fail:
            handler = [self.unless_traced(self.call("fail", last), last), located(ast.Raise(None, None), last)]
            body = [located(ast.Try(body, [located(ast.ExceptHandler(None, None, handler), last)], [], []), first)]
        if self.enter:
            body.insert(0, self.unless_traced(self.call("enter", first), first))
        node.body = head + body
        self.within = False
        return node

    def visit_Lambda(self, node):
        return node

    def visit_ClassDef(self, node):
        return node if self.within else self.generic_visit(node)

    def visit_Return(self, node):
        node = self.generic_visit(node)
        if not self.within or not self.leave:
            return node
        value = node.value or located(ast.Constant(None), node)
        changed = self.call("leave", value, value)
        if self.traced:
            if not isinstance(value, (ast.Name, ast.Constant)):
                raise LookupError(self.target)
            changed = located(ast.IfExp(ast.parse(_COMPILING, mode="eval").body, value, changed), value)
        node.value = changed
        return node

    def visit_Call(self, node):
        node = self.generic_visit(node)
        if self.within and self.argument_of and isinstance(node.func, ast.Attribute) and node.func.attr == self.argument_of:
            node.args[0] = self.call("argument", node.args[0], node.args[0])
        if self.within and self.instead_of and isinstance(node.func, ast.Attribute) and node.func.attr == self.instead_of:
            return self.call("instead", node, node.func.value)
        return node


def located(made, near):
    """The new node and all new ones in it at the location of another."""
    for part in ast.walk(made):
        if isinstance(part, (ast.expr, ast.stmt, ast.excepthandler)) and (made is part or not hasattr(part, "end_col_offset")):
            ast.copy_location(part, near)
    return made


def done():
    """Forgets the sources that were read."""
    _files.clear()
