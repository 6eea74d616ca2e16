"""`%%flatout` in real notebooks: a real kernel, driven by nbclient."""

import os

from conftest import FLATOUT, ROOT, environment, need

nbclient = need("nbclient")
need("ipykernel")
import nbformat  # noqa: E402

SETUP = """\
import time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 100000
    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(16), torch.randn(1)
torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(Slow(), batch_size=8)
"""

LOOP = """
for step, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == {last}:
        {end}
"""


def run(folder, cells, **more):
    """Each cell's outputs, as one text a kind."""
    assert FLATOUT.exists(), f"no {FLATOUT}: cargo build -p flatout, or set FLATOUT_BIN"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    settings = environment(folder, PYTHONPATH=str(ROOT / "python"), FLATOUT_BINARY=str(FLATOUT), LANG="C", LC_ALL=None)
    settings.update(more)
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(folder)}})
    client.execute(env=settings)
    return [outputs(cell) for cell in notebook.cells]


def outputs(cell):
    found = {}
    for output in cell.outputs:
        if output.output_type == "stream":
            parts = {output.name: output.text}
        elif output.output_type == "error":
            parts = {"error": output.ename, "traceback": "\n".join(output.traceback)}
        else:
            parts = dict(output.data)
        for kind, text in parts.items():
            found[kind] = found.get(kind, "") + text
    return found


def test_shows_findings_and_the_account_below_each_cell(tmp_path):
    loop = LOOP.strip()
    cells = [
        "%load_ext flatout",
        SETUP,
        "%%flatout --name first\n" + loop.format(last=300, end="break") + "\nstep",
        # Not recorded: the probe does nothing between two such cells.
        loop.format(last=50, end="break"),
        "%%flatout --name second\n" + loop.format(last=250, end="break"),
        "import os, sys\nprint(os.environ.get('FLATOUT_RING'), os.environ.get('PYTHONPATH'), os.path.isdir('/tmp/ipykernel_%d' % os.getpid()))",
    ]
    load, setup, first, between, second, after = run(tmp_path, cells)
    assert (load, setup, between) == ({}, {}, {})
    # The value of the last expression, as without the magic; then the report.
    assert first["text/plain"].startswith("300")
    for report in (first, second):
        text, html = report["text/plain"], report["text/html"]
        # The line of the data set's cell, by the cell's number, with its source.
        assert "In [2]:5" in text and "In [2]:5" in html, text
        assert "time.sleep(0.002)" in html and "Where step time goes" in html
        assert "<script" not in html and "ipykernel" not in html + text
        assert "flatout run --apply" not in html
    assert "301 steps recorded in" in first["stderr"] and "251 steps recorded in" in second["stderr"], (first["stderr"], second["stderr"])
    assert after["stdout"].split() == ["None", str(ROOT / "python"), "False"]
    records = sorted((tmp_path / "home/runs").iterdir())
    assert [record.name.rpartition("-")[2] for record in records] == ["first", "second"]


def test_an_error_is_the_cells_own_and_its_report_comes_first(tmp_path):
    cells = ["%load_ext flatout", SETUP, "%%flatout\n" + LOOP.strip().format(last=40, end="1 / 0"), "%%flatout\n1 + 1", "%%flatout --nmae x\nprint('ran')"]
    _, _, failed, idle, mistaken = run(tmp_path, cells)
    assert failed["error"] == "ZeroDivisionError"
    assert "_notebook.py" not in failed["traceback"] and "1 / 0" in failed["traceback"]
    assert "41 steps recorded in" in failed["stderr"]
    assert idle["text/plain"] == "2" and "no training step was seen" in idle["stderr"]
    assert mistaken["error"] == "ValueError" and "--name NAME" in mistaken["traceback"] and "stdout" not in mistaken


def test_the_cell_runs_where_flatout_cannot(tmp_path):
    cells = ["%load_ext flatout", "%%flatout\nprint('ran')"]
    missing = run(tmp_path, cells, FLATOUT_BINARY="/nonexistent")[1]
    assert missing["stdout"] == "ran\n" and "runs without a record" in missing["stderr"] and "pip install flatout" in missing["stderr"]
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    os.chmod(silent, 0o755)
    broken = run(tmp_path, cells, FLATOUT_BINARY=str(silent))[1]
    assert broken["stdout"] == "ran\n" and "broken" in broken["stderr"]
    full = tmp_path / "full"
    full.write_text("")
    unwritable = run(tmp_path, cells, FLATOUT_HOME=str(full / "home"))[1]
    assert unwritable["stdout"] == "ran\n" and "runs without a record" in unwritable["stderr"]
