"""Findings, account and telemetry of a run for experiment trackers: Weights & Biases, MLflow, TensorBoard.

`flatout run --log-to` runs this file with the program's own Python, because the trackers are installed there; the report comes as JSON on
stdin, and one line of JSON per tracker goes to stdout. `flatout.integrations` calls `log_active` inside a trainer.
"""

import contextlib
import importlib.util
import json
import os
import sys

PACKAGES = {"wandb": ["wandb"], "mlflow": ["mlflow"], "tensorboard": ["torch", "tensorboard"]}


def missing(name):
    """The packages that a tracker needs and that are not here."""
    return [package for package in PACKAGES[name] if not is_installed(package)]


def is_installed(package):
    spec = importlib.util.find_spec(package)
    # The folders that trackers write here look like packages without an `__init__.py`.
    return spec is not None and spec.origin is not None


def scalars(found):
    """Name and value of everything that is one number for the whole run."""
    for key, value in found["figures"].items():
        yield "flatout/" + key, value
    for row in found["account"]:
        yield "flatout/account/" + row["activity"], row["share"]
    yield "flatout/findings_count", len(found["findings"])


def settings(found):
    return {"flatout/run": found["id"], "flatout/record": found["record"], **{"flatout/" + key: value for key, value in found["settings"].items()}}


FINDINGS = ["severity", "rule", "title", "place", "gain_low", "gain_high"]
LINES = ["share", "activity", "place", "source"]


def to_wandb(found):
    import wandb

    # Without a word from the user nothing leaves this machine: `wandb sync` sends it later.
    mode = os.environ.get("WANDB_MODE") or "offline"
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT") or "flatout",
        name=found["name"],
        config=settings(found),
        job_type="flatout",
        mode=mode,
        settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
    )
    try:
        into_wandb(run, found)
        folder = os.path.dirname(run.dir)
    finally:
        run.finish()
    return folder if mode != "offline" else "%s (send it with: wandb sync %s)" % (folder, folder)


def into_wandb(run, found):
    import wandb

    run.define_metric("flatout/time_s")
    run.define_metric("flatout/series/*", step_metric="flatout/time_s")
    times = {}
    for series in found["series"]:
        for t, value in series["points"]:
            times.setdefault(t, {})["flatout/series/" + series["key"]] = value
    for t in sorted(times):
        run.log({"flatout/time_s": t, **times[t]})
    tables = {}
    for name, columns in (("findings", FINDINGS), ("lines", LINES)):
        rows = [[row[column] if isinstance(row[column], (int, float)) else str(row[column] or "") for column in columns] for row in found[name]]
        # A column of a table has one type.
        rows = [[float(value) if column in ("share",) else str(value) for column, value in zip(columns, row)] for row in rows]
        tables["flatout/" + name] = wandb.Table(columns=columns, data=rows)
    run.log(tables)
    for key, value in scalars(found):
        run.summary[key] = value


def to_mlflow(found):
    from mlflow import MlflowClient

    address = os.environ.get("MLFLOW_TRACKING_URI") or "file:" + os.path.abspath("mlruns")
    if address.startswith("file:"):
        # Recent versions ask for a database instead; a folder is what can be read without one.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    client = MlflowClient(tracking_uri=address)
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "flatout"
    experiment = client.get_experiment_by_name(name)
    experiment = experiment.experiment_id if experiment else client.create_experiment(name)
    run = client.create_run(experiment, start_time=found["started_unix_ms"], run_name=found["name"]).info
    into_mlflow(client, run.run_id, found)
    client.set_terminated(run.run_id)
    return "%s, experiment %s, run %s" % (address, name, run.run_id)


def into_mlflow(client, run, found):
    from mlflow.entities import Metric, Param

    began = found["started_unix_ms"]
    end = began + int(found["length_s"] * 1000)
    metrics = [Metric(key, value, end, 0) for key, value in scalars(found)]
    for series in found["series"]:
        metrics += [Metric("flatout/series/" + series["key"], value, began + int(t * 1000), int(t)) for t, value in series["points"]]
    parameters = [Param(key, str(value)[:500]) for key, value in settings(found).items()]
    # At most 1,000 entities per request.
    for at in range(0, len(metrics), 900):
        client.log_batch(run, metrics=metrics[at : at + 900])
    for at in range(0, len(parameters), 90):
        client.log_batch(run, params=parameters[at : at + 90])
    client.log_text(run, found["markdown"], "flatout/report.md")
    client.log_dict(run, {name: found[name] for name in ("figures", "findings", "account", "lines")}, "flatout/report.json")


def to_tensorboard(found):
    from torch.utils.tensorboard import SummaryWriter

    folder = os.path.join(os.environ.get("FLATOUT_TENSORBOARD") or "runs", "flatout-" + found["id"])
    writer = SummaryWriter(folder)
    try:
        into_tensorboard(writer, found)
    finally:
        writer.close()
    # The writer's own thread loses what it cannot write, without a word. The text is the last entry.
    files = [os.path.join(folder, name) for name in os.listdir(folder)]
    with open(max(files, key=os.path.getmtime), "rb") as file:
        if found["markdown"].encode()[-64:] not in file.read():
            raise OSError("the event file is incomplete; is the disk full?")
    return "%s (see it with: tensorboard --logdir %s)" % (folder, os.path.dirname(folder))


def into_tensorboard(writer, found):
    began = found["started_unix_ms"] / 1000
    end = began + found["length_s"]
    for key, value in scalars(found):
        writer.add_scalar(key, value, 0, walltime=end)
    for series in found["series"]:
        for t, value in series["points"]:
            writer.add_scalar("flatout/series/" + series["key"], value, int(t), walltime=began + t)
    writer.add_text("flatout/report", found["markdown"], 0, walltime=end)


TRACKERS = {"wandb": to_wandb, "mlflow": to_mlflow, "tensorboard": to_tensorboard}


def log_active(found, mlflow_before=None):
    """Adds the report to the runs that a trainer's own trackers have under way. Yields a tracker's name and the error, None where it went well.

    `mlflow_before` is the run of MLflow that was under way at the start: transformers ends its own before it calls other callbacks."""
    for name, log in (("wandb", active_wandb), ("mlflow", lambda found: active_mlflow(found, mlflow_before))):
        # What the program did not import has no run under way.
        if name in sys.modules:
            try:
                if log(found):
                    yield name, None
            except Exception as error:
                yield name, error


def active_wandb(found):
    run = sys.modules["wandb"].run
    if run is None:
        return False
    into_wandb(run, found)
    return True


def active_mlflow(found, before):
    run = mlflow_run() or before
    if run is None:
        return False
    into_mlflow(sys.modules["mlflow"].MlflowClient(), run, found)
    return True


def mlflow_run():
    """The id of the run of MLflow that is under way. What the program did not import has none."""
    try:
        run = sys.modules["mlflow"].active_run()
    except Exception:
        return None
    return run and run.info.run_id


def reason(error):
    """One line of an error that may have many."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ("%s: %s" % (type(error).__name__, lines[0] if lines else ""))[:300]


def main(arguments):
    names = arguments[1].split(",")
    if arguments[0] == "check":
        print(json.dumps({name: missing(name) for name in names}))
        return
    found = json.load(sys.stdin)
    answers = sys.stdout
    for name in names:
        answer = {"tracker": name}
        try:
            # Trackers greet on stdout.
            with contextlib.redirect_stdout(sys.stderr):
                answer["where"] = TRACKERS[name](found)
        except BaseException as error:
            answer["error"] = reason(error)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
