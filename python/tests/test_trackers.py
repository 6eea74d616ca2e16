"""`flatout run --log-to` and the callbacks, with the real trackers and trainers, offline."""

import json
import os
import subprocess
import sys

from conftest import FLATOUT, ROOT, environment, missing, need

DATA = """
import time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 100000
    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(16), torch.randn(1)
torch.set_num_threads(1)
"""

TRAIN = (
    DATA
    + """
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, (x, y) in enumerate(torch.utils.data.DataLoader(Slow(), batch_size=8)):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if step == 250: break
"""
)


def settings(folder, **more):
    offline = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HF_HUB_OFFLINE": "1", "LANG": "C", "LC_ALL": None, "PYTHONPATH": str(ROOT / "python")}
    return environment(folder, **{**offline, "FLATOUT_BINARY": str(FLATOUT), **more})


def run(folder, program, *options, **more):
    assert FLATOUT.exists(), f"no {FLATOUT}: cargo build -p flatout, or set FLATOUT_BIN"
    (folder / "train.py").write_text(program)
    command = [sys.executable, "train.py"]
    if options:
        command = [str(FLATOUT), "run", *options, "--", *command]
    done = subprocess.run(command, cwd=folder, env=settings(folder, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    return done.returncode, done.stderr, done.stdout


def tensorboard_of(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (file,) = folder.rglob("events.out.tfevents.*")
    return EventAccumulator(str(file)).Reload()


def wandb_of(folder):
    """Everything in the offline run's file, as bytes, and its tables."""
    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    tables = [json.loads(table.read_text()) for table in folder.rglob("*.table.json")]
    return file.read_bytes(), tables


def mlflow_runs(folder, experiment):
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri="file:" + str(folder / "mlruns"))
    return client, client.search_runs([client.get_experiment_by_name(experiment).experiment_id])


def test_a_run_is_logged_to_every_tracker(tmp_path):
    for package in ("wandb", "mlflow", "tensorboard"):
        need(package)
    code, told, _ = run(tmp_path, TRAIN, "--name", "logged", "--log-to", "wandb,mlflow,tensorboard", WANDB_MODE=None)
    assert code == 0 and told.count("logged to") == 3 and "not logged" not in told, told
    # W&B stays on this machine unless the user says otherwise.
    assert "wandb sync" in told
    written, tables = wandb_of(tmp_path)
    assert b"flatout/samples_per_s" in written and b"flatout/series/rate" in written
    assert any("loader-without-workers" in row for table in tables for row in table["data"])
    client, (entry,) = mlflow_runs(tmp_path, "flatout")
    assert entry.info.run_name == "logged" and entry.info.status == "FINISHED"
    assert entry.data.metrics["flatout/samples_per_s"] > 0
    assert len(client.get_metric_history(entry.info.run_id, "flatout/series/rate")) > 1
    assert {file.path for file in client.list_artifacts(entry.info.run_id, "flatout")} == {"flatout/report.md", "flatout/report.json"}
    board = tensorboard_of(tmp_path / "runs")
    assert board.Scalars("flatout/samples_per_s")[0].value > 0
    assert len(board.Scalars("flatout/series/rate")) > 1
    assert any(tag.startswith("flatout/account/") for tag in board.Tags()["scalars"])


def test_a_tracker_that_cannot_be_used_is_one_line(tmp_path):
    need("mlflow")
    (tmp_path / "mlruns").write_text("a file, where a folder must be")
    # A package that is not there, one that fails, and one that does not exist.
    hide = tmp_path / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text("import sys\nsys.modules['wandb'] = None\n")
    program = "import sys\nsys.exit(7)\n"
    path = os.pathsep.join([str(hide), str(ROOT / "python")])
    code, told, _ = run(tmp_path, program, "--log-to", "wandb,mlflow", PYTHONPATH=path)
    assert code == 7, told
    assert "wandb is skipped: " in told and "does not have wandb" in told and "-m pip install wandb" in told, told
    assert "not logged to mlflow: " in told and "The record is complete." in told, told
    code, told, _ = run(tmp_path, program, "--log-to", "comet")
    assert code == 2 and "comet" in told and "tensorboard" in told, told


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    need("tensorboard")
    code, told, _ = run(tmp_path, TRAIN, "--log-to", "tensorboard", FLATOUT_TENSORBOARD="/proc/nowhere")
    assert code == 0 and "not logged to tensorboard: " in told, told


def test_a_full_disk_is_one_line(tmp_path):
    need("tensorboard")
    need("mlflow")
    full = tmp_path / "full"
    full.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(full)], stderr=subprocess.DEVNULL).returncode:
        missing("mount", "a small file system cannot be mounted here")
    try:
        places = {"FLATOUT_TENSORBOARD": str(full / "boards"), "MLFLOW_TRACKING_URI": f"file:{full / 'mlruns'}"}
        code, told, _ = run(tmp_path, TRAIN, "--log-to", "tensorboard,mlflow", **places)
    finally:
        subprocess.run(["umount", "-l", str(full)], check=True)
    assert code == 0 and "not logged to tensorboard: " in told and "not logged to mlflow: " in told, told


LIGHTNING = (
    DATA
    + """
import lightning
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from flatout.integrations.lightning import FlatoutCallback
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 1)
    def training_step(self, batch, index):
        x, y = batch
        if index == STOP: raise KeyError("stop")
        return torch.nn.functional.mse_loss(self.layer(x), y)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)
callback = FlatoutCallback(name="lightning")
loggers = [TensorBoardLogger("boards"), CSVLogger("tables")]
trainer = lightning.Trainer(max_steps=250, logger=loggers, callbacks=[callback], accelerator="cpu", enable_progress_bar=False, enable_checkpointing=False)
try:
    trainer.fit(Model(), torch.utils.data.DataLoader(Slow(), batch_size=8))
except KeyError:
    pass
print("steps", callback.report["steps"])
"""
)


def test_lightning_logs_to_its_own_loggers(tmp_path):
    need("lightning")
    code, told, _ = run(tmp_path, LIGHTNING.replace("STOP", "-1"))
    assert code == 0 and "logged to TensorBoardLogger" in told and "logged to CSVLogger" in told, told
    assert "not logged" not in told and "250 steps recorded in" in told and "time.sleep(0.002)" in told, told
    board = tensorboard_of(tmp_path / "boards")
    assert board.Scalars("flatout/samples_per_s")[0].value > 0
    (table,) = (tmp_path / "tables").rglob("metrics.csv")
    assert "flatout_samples_per_s" in table.read_text()


def test_lightning_that_fails_is_reported_too(tmp_path):
    need("lightning")
    code, told, printed = run(tmp_path, LIGHTNING.replace("STOP", "200"))
    assert code == 0 and "200 steps recorded in" in told, told
    assert printed.split()[-2:] == ["steps", "200"], printed


TRANSFORMERS = (
    DATA
    + """
import transformers
from flatout.integrations.transformers import FlatoutCallback
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 1)
    def forward(self, x, labels):
        loss = torch.nn.functional.mse_loss(self.layer(x), labels)
        return {"loss": loss}
class Named(Slow):
    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        global seen
        seen += 1
        if seen == STOP: raise KeyError("stop")
        return {"x": x, "labels": y}
seen = 0
args = transformers.TrainingArguments(output_dir="out", max_steps=250, per_device_train_batch_size=8, report_to=REPORT_TO, save_strategy="no", use_cpu=True, disable_tqdm=True, logging_steps=100)
transformers.Trainer(model=Model(), args=args, train_dataset=Named(), callbacks=[FlatoutCallback(name="hf")]).train()
"""
)


def transformers(report_to, stop=-1):
    return TRANSFORMERS.replace("REPORT_TO", report_to).replace("STOP", str(stop))


def test_transformers_logs_to_what_it_reports_to(tmp_path):
    for package in ("transformers", "accelerate", "wandb", "tensorboard"):
        need(package)
    code, told, _ = run(tmp_path, transformers("['wandb', 'tensorboard']"))
    assert code == 0 and "logged to wandb" in told and "logged to TensorBoard" in told and "not logged" not in told, told
    assert "250 steps recorded in" in told, told
    written, tables = wandb_of(tmp_path)
    assert b"flatout/samples_per_s" in written
    assert any("loader-without-workers" in row for table in tables for row in table["data"]), tables
    (folder,) = [path for path in tmp_path.rglob("flatout") if path.is_dir() and list(path.glob("events*"))]
    assert tensorboard_of(folder).Scalars("flatout/samples_per_s")[0].value > 0


def test_transformers_logs_to_the_mlflow_run_that_it_has_ended(tmp_path):
    for package in ("transformers", "accelerate", "mlflow"):
        need(package)
    places = {"MLFLOW_TRACKING_URI": f"file:{tmp_path / 'mlruns'}", "MLFLOW_EXPERIMENT_NAME": "hf", "MLFLOW_ALLOW_FILE_STORE": "true"}
    code, told, _ = run(tmp_path, transformers("['mlflow']"), **places)
    assert code == 0 and "flatout: logged to mlflow" in told and "not logged" not in told, told
    client, (entry,) = mlflow_runs(tmp_path, "hf")
    assert entry.data.metrics["flatout/samples_per_s"] > 0 and entry.info.status == "FINISHED"
    assert "train_runtime" in entry.data.metrics


def test_transformers_that_fails_is_reported_too(tmp_path):
    for package in ("transformers", "accelerate"):
        need(package)
    program = transformers("[]", stop=200 * 8 + 1)
    # At the end of the program, and at the start of the next training.
    code, told, _ = run(tmp_path, program)
    assert code == 1 and "KeyError" in told and " steps recorded in" in told and "loader-without-workers" not in told.split("KeyError")[0], told
    body, train = program.rsplit("transformers.Trainer(", 1)
    again = f"{body}def train():\n    transformers.Trainer({train}\ntry:\n    train()\nexcept KeyError:\n    pass\ntrain()\n"
    code, told, _ = run(tmp_path, again)
    assert code == 0 and told.count(" steps recorded in") == 2 and "flatout run` already" not in told, told


def test_a_trainer_trains_where_flatout_cannot(tmp_path):
    need("lightning")
    program = LIGHTNING.replace("STOP", "-1").replace("max_steps=250", "max_steps=5").replace('print("steps", callback.report["steps"])', "print(trainer.global_step)")
    code, told, printed = run(tmp_path, program, FLATOUT_BINARY="/nonexistent")
    assert code == 0 and "this training runs without a record" in told, told
    assert printed.split()[-1] == "5", printed
