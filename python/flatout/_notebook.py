"""`%load_ext flatout` and `%%flatout`: a cell that trains, and below it what held it back.

The cell runs in the kernel as always. Next to it runs `flatout notebook`, which reads the kernel's stacks and the counters of the probe; the
probe is loaded with the first such cell and does nothing between them. Whatever fails here is one line of warning: the cell runs once, as
without flatout.
"""

import argparse
import ast
import linecache
import os
import re
import shlex
import sys

from ._watch import Watch, warn


class Sources:
    """The cells' sources as files, for as long as the record is made: the names that their code has are names of files that do not exist."""

    def __init__(self, shell):
        counts = getattr(shell.compile, "_filename_map", {})
        self.cells = {name: counts[name] for name in counts if os.path.isabs(name) and name in linecache.cache}
        self.files, self.folders = [], []

    def write(self):
        for name in self.cells:
            folder = os.path.dirname(name)
            try:
                if not os.path.isdir(folder):
                    os.mkdir(folder, 0o700)
                    self.folders.append(folder)
                with open(name, "x", encoding="utf-8") as file:
                    file.write("".join(linecache.cache[name][2]))
                self.files.append(name)
            except OSError:
                # There already, or no room: then lines have no text.
                pass

    def remove(self):
        for path, delete in [(path, os.unlink) for path in self.files] + [(path, os.rmdir) for path in self.folders]:
            try:
                delete(path)
            except OSError:
                pass
        self.files, self.folders = [], []

    def named(self, text):
        """Places as a person knows them: `In [3]:7` for `/tmp/ipykernel_77/1234.py:7`."""
        for name, count in self.cells.items():
            for known in (name, os.path.basename(name)):
                text = re.sub(re.escape(known) + r"(?!\w)", "In [%s]" % count, text)
        return text


class Report:
    """What the cell showed, as rich output and as text."""

    def __init__(self, found, sources):
        self.record, self.steps = found["record"], found["steps"]
        self.html, self.text = sources.named(found["html"]), sources.named(found["text"])

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.text}


def parse(line):
    parser = argparse.ArgumentParser(prog="%%flatout", add_help=False, exit_on_error=False)
    parser.add_argument("--name", default="cell")
    parser.add_argument("--lang", default="")
    try:
        options, rest = parser.parse_known_args(shlex.split(line))
    # Before Python 3.12 a missing value ends the program in spite of `exit_on_error`.
    except (argparse.ArgumentError, ValueError, SystemExit) as error:
        raise ValueError("%%flatout: {}; options are --name NAME and --lang LANG".format(error)) from None
    if rest:
        raise ValueError("%%flatout: unknown option {!r}; options are --name NAME and --lang LANG".format(rest[0]))
    return options


def compiled(shell, cell):
    """The cell's code, as the shell itself would run it: the value of a last expression is shown."""
    # The magic's own line is the first one, so that lines have the numbers that the notebook shows.
    text = "\n" + shell.transform_cell(cell)
    # The number of the cell that is being run: it was the last one to be named.
    counts = getattr(shell.compile, "_filename_map", {})
    name = shell.compile.cache(text, max(counts.values(), default=shell.execution_count), raw_code=text)
    tree = ast.parse(text, name)
    shown = []
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not cell.rstrip().endswith(";"):
        shown = [compile(ast.Interactive([tree.body.pop()]), name, "single")]
    return [compile(tree, name, "exec"), *shown]


def flatout_magic(shell, line, cell):
    """Runs a cell that trains and shows what held it back."""
    __tracebackhide__ = True
    options = parse(line)
    codes = compiled(shell, cell)
    watch, sources = None, Sources(shell)
    if os.environ.get("FLATOUT_RING"):
        warn("the kernel runs under `flatout run` already; this cell is a part of that record")
    else:
        try:
            sources.write()
            watch = Watch(options.name, options.lang)
        except Exception as error:
            sources.remove()
            warn("this cell runs without a record: {}".format(error))
    failed = True
    try:
        for code in codes:
            exec(code, shell.user_ns)
        failed = False
    finally:
        if watch is not None:
            show(watch, sources, failed)


def show(watch, sources, failed):
    try:
        report = Report(watch.end(failed), sources)
    except Exception as error:
        warn("no report of this cell: {}".format(error))
        return
    finally:
        sources.remove()
    if not report.steps:
        warn("no training step was seen in this cell; steps are those of torch optimizers, or calls of flatout.step(). Record: {}".format(report.record))
        return
    from IPython.display import display

    display(report)
    print("flatout: {} steps recorded in {}; `flatout report {}` has the whole page".format(report.steps, report.record, os.path.basename(report.record)), file=sys.stderr)


def load(shell):
    def magic(line, cell):
        __tracebackhide__ = True
        flatout_magic(shell, line, cell)

    magic.__doc__ = flatout_magic.__doc__
    # Stacks are searched for the user's own lines, and these are none.
    for function in (magic, flatout_magic):
        function.__code__ = function.__code__.replace(co_filename="<flatout>")
    shell.register_magic_function(magic, "cell", "flatout")
