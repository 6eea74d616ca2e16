"""What `flatout tune` finds, beside a grid over the same knobs, and beside Optuna and Lightning's batch-size finder given the same time.

    python benches/tune/measure.py --device cpu --flatout target/release/flatout --results results.jsonl --minutes 20
    python benches/tune/measure.py --results results.jsonl --table

One line of the results file is one thing measured: a search, a point of a grid, a peer. What stands there already is not measured
again, so it may be stopped and called again as often as one likes; the most important comes first. Every point, whoever chose it, is
measured in the same way: `flatout tune --max-trials 1 --start …`. The programs make their data themselves. The peers need the
packages of ../requirements.txt.
"""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import table

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {"workers": "loader.num_workers", "batch": "loader.batch_size", "threads": "threads.torch"}
PROGRAMS = ["images_cnn", "stocks_lstm", "returns_gru", "captcha_cnn", "text_transformer", "augmented_cnn", "interactions_mlp", "sensors_autoencoder"]
# Programs with a grid, the most important first, and its axes; the search beside it turns the same knobs.
GRIDS = {
    "cpu": {
        "interactions_mlp": {"workers": [0, 1, 2], "batch": [128, 1024, 8192], "threads": [1, 2]},
        "sensors_autoencoder": {"workers": [0, 1], "batch": [8, 64, 256, 512], "threads": [1, 2]},
        "augmented_cnn": {"workers": [0, 1, 2], "batch": [32, 128], "threads": [1, 2]},
    },
    "cuda": {
        "stocks_lstm": {"workers": [4, 12], "batch": [256, 1024]},
        "interactions_mlp": {"workers": [8, 15], "batch": [512, 2048, 8192]},
        "images_cnn": {"workers": [4, 12], "batch": [256, 1024]},
    },
}
KNOBS = {"workers": "num_workers,persistent_workers,prefetch_factor,pin_memory,gc_freeze", "batch": "batch_size", "threads": "threads.torch"}


class Bench:
    def __init__(self, arguments):
        self.arguments, self.path = arguments, pathlib.Path(arguments.results)
        self.grids = GRIDS[arguments.device]
        self.until = time.monotonic() + arguments.minutes * 60

    def lines(self):
        return table.read(self.path)

    def find(self, **key):
        return next((line for line in self.lines() if all(line.get(name) == value for name, value in key.items())), None)

    def once(self, measure, **key):
        """Measures what the file does not hold yet, while there is time."""
        if self.find(**key) or time.monotonic() > self.until or not wanted(self.arguments, key):
            return
        began = time.monotonic()
        line = {**key, **measure(), "wall_s": round(time.monotonic() - began, 1), "unix": round(time.time())}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(table.brief(line), flush=True)

    def flatout(self, program, options, records=None):
        home = tempfile.mkdtemp(prefix="flatout-measure-")
        command = [self.arguments.flatout, "tune", "--json", "--trial-seconds", str(self.arguments.seconds), *options]
        command += ["--", sys.executable, str(HERE / "programs" / f"{program}.py")]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "FLATOUT_HOME": home, "TMPDIR": home})
            if records:
                shutil.make_archive(str(pathlib.Path(records) / f"{program}-{time.time():.0f}"), "gztar", home)
        finally:
            shutil.rmtree(home, ignore_errors=True)
        return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr[-600:]}

    def point(self, program, apply):
        found = self.flatout(program, ["--max-trials", "1", *(["--start", apply] if apply else [])])
        return {"apply": apply, "score": found["start"]["score"]} if "start" in found else found

    def search(self, program, knobs):
        options = ["--max-trials", "12", "--budget", f"{self.arguments.budget}s", *(["--knobs", knobs] if knobs else [])]
        found = self.flatout(program, options, self.arguments.records)
        if "error" in found:
            return found
        kept = ("number", "changes", "settings", "score", "predicted", "gain", "verdict", "why", "memory_bytes", "power_w", "sizes", "fed", "supply", "on_pages", "variants", "wait_s", "aside_s", "seconds", "steps", "samples")
        trials = [{name: trial[name] for name in kept if trial.get(name) is not None} for trial in found["trials"]]
        return {**{name: found[name] for name in ("start", "best", "gain", "unit", "seconds", "changed")}, "trials": trials}

    def run(self):
        for program, axes in self.grids.items():
            knobs = knobs_of(axes)
            self.once(lambda: self.search(program, knobs), kind="tune", program=program, knobs=knobs)
        for program, axes in self.grids.items():
            for apply in points(axes):
                self.once(lambda: self.point(program, apply), kind="grid", program=program, apply=apply)
            for again in range(self.arguments.again):
                for who, apply in table.finalists(self.lines(), program):
                    self.once(lambda: self.point(program, apply), kind="again", program=program, who=who, again=again)
        self.peers("interactions_mlp")
        for program in [program for program in PROGRAMS if program not in self.grids] + list(self.grids):
            self.once(lambda: self.search(program, ""), kind="tune", program=program, knobs="")

    def peers(self, program):
        """As many seconds as the search took."""
        tune = self.find(kind="tune", program=program, knobs=knobs_of(self.grids[program]))
        if not tune or "error" in tune:
            return
        self.once(lambda: self.optuna(program, tune["seconds"]), kind="optuna", program=program)
        self.once(lambda: self.lightning(program, tune["seconds"]), kind="lightning", program=program)

    def optuna(self, program, seconds):
        try:
            import optuna as library
        except ModuleNotFoundError as missing:
            return {"error": str(missing)}

        library.logging.set_verbosity(library.logging.WARNING)
        study = library.create_study(direction="maximize", sampler=library.samplers.TPESampler(seed=0, n_startup_trials=4))

        def objective(trial):
            chosen = {name: trial.suggest_categorical(name, values) for name, values in self.grids[program].items()}
            return self.point(program, settings(chosen)).get("score", {"mean": 0.0})["mean"]

        study.optimize(objective, timeout=seconds)
        apply = settings(study.best_params)
        return {"trials": len(study.trials), "found": study.best_value, **self.point(program, apply)}

    def lightning(self, program, seconds):
        """The batch it chooses, measured like every other point. It knows the MLP only."""
        command = [sys.executable, str(HERE / "lightning_finder.py"), "--seconds", str(seconds)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
        except subprocess.TimeoutExpired:
            return {"error": f"no batch found in {seconds + 60:.0f} s"}
        if done.returncode != 0:
            return {"error": done.stderr[-600:]}
        found = json.loads(done.stdout.splitlines()[-1])
        return {**found, **self.point(program, settings({"batch": found["batch"]}))}


def settings(chosen):
    """As `--start` wants them; workers stay between epochs and leave the program's objects alone, as those of the search do."""
    pairs = [(NAMES[name], value) for name, value in chosen.items()]
    if chosen.get("workers"):
        pairs += [("loader.persistent_workers", "on"), ("gc.freeze", "on")]
    return ",".join(f"{key}={value}" for key, value in sorted(pairs))


def knobs_of(axes):
    """The grid's knobs, within its batches."""
    ranges = {name: f"={min(values)}..{max(values)}" if name == "batch" else "" for name, values in axes.items()}
    return ",".join(KNOBS[name] + ranges[name] for name in axes)


def points(axes):
    all_points = [settings(dict(zip(axes, values))) for values in itertools.product(*axes.values())]
    assert len(all_points) <= 24
    return all_points


def wanted(arguments, key):
    kinds = {key["kind"], "tune-grid" if key.get("knobs") else "tune-all"} if key["kind"] == "tune" else {key["kind"]}
    return (not arguments.kinds or kinds & set(arguments.kinds)) and (not arguments.programs or key["program"] in arguments.programs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=list(GRIDS), default="cpu")
    parser.add_argument("--flatout", default="target/release/flatout")
    parser.add_argument("--results", required=True)
    parser.add_argument("--minutes", type=float, default=20.0, help="nothing further begins after that")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a trial, three times that where it varies")
    parser.add_argument("--budget", type=float, default=75.0, help="seconds of a search")
    parser.add_argument("--again", type=int, default=3, help="how often the search's and the grid's best are measured again, in turn")
    parser.add_argument("--kinds", nargs="*", help="only these: tune (tune-grid, tune-all), grid, again, optuna, lightning")
    parser.add_argument("--programs", nargs="*", help="only these")
    parser.add_argument("--records", help="a folder for the records of all trials of a search, packed: what predictions can be held against")
    parser.add_argument("--table", action="store_true", help="print what the file holds, as Markdown")
    arguments = parser.parse_args()
    if arguments.table:
        print(table.markdown(table.read(pathlib.Path(arguments.results))))
    else:
        Bench(arguments).run()


if __name__ == "__main__":
    main()
