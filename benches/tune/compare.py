"""`flatout tune` against a grid over the same knobs, and against Optuna and Lightning's batch-size finder given the same time.

    python benches/tune/compare.py --flatout target/release/flatout --program interactions_mlp --out result.json
    python benches/tune/compare.py --flatout … --program stocks_lstm --only tune,grid --grid workers=0,1,2 --grid batch=64,256

    python benches/tune/compare.py --only tune,optuna,lightning …    with the packages of ../requirements.txt

Every point, whoever chose it, is measured in the same way: `flatout tune --max-trials 1 --start …`. The programs make their data
themselves, so there is nothing to warm.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KEYS = {"workers": "loader.num_workers", "batch": "loader.batch_size", "amp": "amp", "prefetch": "loader.prefetch_factor"}


def flatout(arguments, options, program):
    home = tempfile.mkdtemp(prefix="flatout-compare-")
    command = [arguments.flatout, "tune", "--json", "--trial-seconds", str(arguments.seconds), *options, "--", sys.executable, str(program)]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "FLATOUT_HOME": home, "TMPDIR": home})
    if done.returncode != 0:
        return {"error": done.stderr[-600:], "wall_s": time.monotonic() - began}
    return {**json.loads(done.stdout), "wall_s": time.monotonic() - began}


def point(arguments, program, settings):
    start = ",".join(f"{KEYS[name]}={value}" for name, value in settings.items() if value not in ("", "off"))
    found = flatout(arguments, ["--max-trials", "1", *(["--start", start] if start else [])], program)
    score = found.get("start", {}).get("score", {"mean": 0.0, "low": 0.0, "high": 0.0})
    return {"settings": settings, "score": score, "error": found.get("error"), "wall_s": found["wall_s"]}


def grid(arguments, program, axes):
    names = list(axes)
    points = [dict(zip(names, values)) for values in itertools.product(*axes.values())]
    if len(points) > 24:
        sys.exit(f"{len(points)} points; at most 24")
    results = []
    for settings in points:
        results.append(point(arguments, program, settings))
        print("grid", settings, round(results[-1]["score"]["mean"]), flush=True)
    return results


def optuna(arguments, program, axes, seconds):
    import optuna as library

    library.logging.set_verbosity(library.logging.WARNING)
    study = library.create_study(direction="maximize", sampler=library.samplers.TPESampler(seed=0, n_startup_trials=4))

    def objective(trial):
        settings = {name: trial.suggest_categorical(name, values) for name, values in axes.items()}
        return point(arguments, program, settings)["score"]["mean"]

    study.optimize(objective, timeout=seconds)
    return {"score": study.best_value, "settings": study.best_params, "trials": len(study.trials)}


def lightning(arguments, program, seconds):
    """The batch it chooses, measured like every other point. It knows the MLP only."""
    command = [sys.executable, str(HERE / "lightning_finder.py"), "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    if done.returncode != 0:
        return {"error": done.stderr[-600:]}
    found = json.loads(done.stdout.splitlines()[-1])
    return {**found, "score": point(arguments, program, {"batch": found["batch"]})["score"]}


def keep(arguments, whole):
    """As far as it has come: a machine may be taken away."""
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(whole, indent=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flatout", default="target/release/flatout")
    parser.add_argument("--program", action="append", required=True, help="names of programs/, without .py")
    parser.add_argument("--grid", action="append", default=[], help="workers=0,1,2")
    parser.add_argument("--only", default="tune,grid")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--max-trials", type=int, default=12)
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--peer-seconds", type=float, help="time for each peer (default: what tune took)")
    parser.add_argument("--knobs", default="")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    axes = {name: values.split(",") for name, values in (one.split("=") for one in arguments.grid)}
    steps = arguments.only.split(",")
    whole = []
    for name in arguments.program:
        program = HERE / "programs" / f"{name}.py"
        result = {"program": name}
        whole.append(result)
        if "tune" in steps:
            knobs = ["--knobs", arguments.knobs] if arguments.knobs else []
            options = ["--max-trials", str(arguments.max_trials), "--budget", arguments.budget, *knobs]
            result["tune"] = flatout(arguments, options, program)
            tune = result["tune"]
            if "error" in tune:
                print(name, tune["error"], flush=True)
            else:
                print(name, "tune", round(tune["gain"]["mean"], 2), "x", tune["best"]["apply"], len(tune["trials"]), "trials", round(tune["wall_s"]), "s", flush=True)
        keep(arguments, whole)
        if "grid" in steps and axes:
            result["grid"] = grid(arguments, program, axes)
            best = max(result["grid"], key=lambda one: one["score"]["mean"])
            result["grid_best"] = best
            print(name, "grid best", best["settings"], round(best["score"]["mean"]), flush=True)
            if "tune" in result and "best" in result["tune"]:
                # Measured again, side by side, so that both are of the same minute.
                again = point(arguments, program, best["settings"])["score"]["mean"]
                tuned = flatout(arguments, ["--max-trials", "1", *(["--start", result["tune"]["best"]["apply"]] if result["tune"]["best"]["apply"] else [])], program)
                tuned = tuned.get("start", {}).get("score", {}).get("mean", 0.0)
                result["side_by_side"] = {"grid": again, "tune": tuned, "share": tuned / again if again else None}
                print(name, "tune / grid", result["side_by_side"], flush=True)
        seconds = arguments.peer_seconds or result.get("tune", {}).get("wall_s", 60.0)
        if "optuna" in steps and axes:
            result["optuna"] = optuna(arguments, program, axes, seconds)
            print(name, "optuna", result["optuna"], flush=True)
        if "lightning" in steps and name == "interactions_mlp":
            result["lightning"] = lightning(arguments, program, seconds)
            print(name, "lightning", result["lightning"], flush=True)
        keep(arguments, whole)


if __name__ == "__main__":
    main()
