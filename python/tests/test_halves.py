"""The probe observes, `_flatout_apply` changes: the line between them, in the source and in a running program."""

import ast
import subprocess
import sys
from pathlib import Path

from conftest import ROOT, environment, flatout, need

need("torch")

PROBE = ROOT / "python" / "_flatout_probe"
# These let the other half in, if the user asked for a change.
DOORS = ["begin.py", "hook.py"]


def trees():
    for path in sorted(PROBE.rglob("*.py")):
        yield path.relative_to(PROBE).as_posix(), ast.parse(path.read_text())


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_only_the_doors_of_the_probe_import_what_changes_programs():
    found = [name for name, tree in trees() if any(module.startswith("_flatout_apply") for module in imported(tree))]
    assert found == DOORS


def replaced(tree):
    """What replaces an attribute of a class or of a module of torch: `cls.x = …`, `torch.a.b = …`, `Tensor.x = …`, `setattr(…)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
            yield ast.unparse(node)
        for target in getattr(node, "targets", None) or [getattr(node, "target", None)]:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(part, ast.Attribute) and isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                    owner = ast.unparse(part.value)
                    first, last = owner.split(".")[0], owner.split(".")[-1]
                    if first in ("cls", "torch", "_torch") or last[:1].isupper():
                        yield ast.unparse(node)


def test_the_probe_hooks_into_torch_through_weave_alone():
    assert list(replaced(ast.parse("cls.step = 1"))) and list(replaced(ast.parse("torch.Tensor.item, x = a, b")))
    assert not list(replaced(ast.parse("self.step = 1")))
    found = {name: list(replaced(tree)) for name, tree in trees()}
    assert {name: lines for name, lines in found.items() if lines} == {}


PROGRAM = """
import sys
import torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(torch.ones(8, 2), batch_size=2):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
assert "_flatout_probe.clock" in sys.modules
print(any(name.startswith("_flatout_apply") for name in sys.modules))
"""


def changed(folder, *options):
    command = [*flatout()[:-1], *options, "--", sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_program_that_is_only_watched_has_none_of_the_other_half(tmp_path: Path):
    assert changed(tmp_path) == "False"
    assert changed(tmp_path, "--apply", "threads.torch=1") == "True"
