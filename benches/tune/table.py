"""The results of measure.py as tables."""

import json


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def of(lines, kind, program):
    return [line for line in lines if line["kind"] == kind and line["program"] == program and "error" not in line]


def beside_grid(lines, program):
    """The search that turned the knobs of the grid."""
    return next((line for line in of(lines, "tune", program) if line["knobs"]), None)


def finalists(lines, program):
    """Settings that are measured again in turn: the search's and the grid's best."""
    tune, grid = beside_grid(lines, program), of(lines, "grid", program)
    if not tune or not grid:
        return []
    best = max(grid, key=lambda line: line["score"]["mean"])
    return [("tune", tune["best"]["apply"]), ("grid", best["apply"])]


def pooled(scores):
    """The mean, and a range that holds all means and is no narrower than the intervals' mean by the root of their number."""
    mean = sum(score["mean"] for score in scores) / len(scores)
    half = sum(score["high"] - score["low"] for score in scores) / 2 / len(scores) ** 1.5
    half = max([half, *(abs(score["mean"] - mean) for score in scores)])
    return {"mean": mean, "low": mean - half, "high": mean + half}


def rate(score):
    return f"{score['mean']:,.0f} ({score['low']:,.0f}–{score['high']:,.0f})"


def brief(line):
    words = [line["kind"], line["program"], line.get("who", ""), line.get("apply", "")]
    if "error" in line:
        words.append(line["error"])
    elif line["kind"] == "tune":
        gain = line["gain"]
        words += [f"{gain['mean']:.2f}×", f"predicted {gain['predicted'] or 1:.2f}×", line["best"]["apply"], f"{len(line['trials'])} trials"]
    else:
        words.append(rate(line["score"]))
    return " ".join(word for word in words if word) + f" in {line['wall_s']:.0f} s"


def markdown(lines):
    return "\n".join(searches(lines) + grids(lines) + predictions(lines) + peers(lines))


def searches(lines):
    rows = ["| program | gain | predicted | with | trials, time |", "| --- | --- | --- | --- | --- |"]
    for line in lines:
        if line["kind"] != "tune" or "error" in line:
            continue
        gain, start, best = line["gain"], line["start"]["score"], line["best"]
        changed = f"**{gain['mean']:.2f}×** ({gain['low']:.2f}–{gain['high']:.2f}): {start['mean']:,.0f} → {best['score']['mean']:,.0f}"
        predicted = f"{gain['predicted']:.2f}×" if gain.get("predicted") else ""
        name = line["program"] + (" (knobs of the grid)" if line["knobs"] else "")
        rows.append(f"| {name} | {changed if line['changed'] else 'nothing better'} | {predicted} | {best['apply'].replace(',', ', ')} | {len(line['trials'])} in {line['seconds']:.0f} s |")
    return [*rows, ""]


def grids(lines):
    rows = []
    for program in dict.fromkeys(line["program"] for line in lines if line["kind"] == "grid"):
        points = of(lines, "grid", program)
        rows += [f"### {program}: the grid", "", "| setting | samples/s |", "| --- | --- |"]
        rows += [f"| {line['apply'].replace(',', ', ') or 'as it is'} | {rate(line['score'])} |" for line in points]
        again = of(lines, "again", program)
        sides = {who: pooled([line["score"] for line in again if line["who"] == who]) for who in dict.fromkeys(line["who"] for line in again)}
        rows += ["", *(f"Again, in turn: {who} {rate(score)}" for who, score in sides.items())]
        if "tune" in sides and "grid" in sides:
            tune, grid = sides["tune"], sides["grid"]
            rows.append(f"tune / best of the grid: {tune['mean'] / grid['mean']:.3f} ({tune['low'] / grid['high']:.3f}–{tune['high'] / grid['low']:.3f})")
        rows.append("")
    return rows


def predictions(lines):
    rows = ["| program | trial | predicted | measured | ratio |", "| --- | --- | --- | --- | --- |"]
    good = count = 0
    for line in lines:
        for trial in line.get("trials", []) if line["kind"] == "tune" else []:
            if trial.get("predicted") and trial.get("gain"):
                ratio = trial["predicted"] / trial["gain"]
                good, count = good + (0.75 <= ratio <= 1.25), count + 1
                changes = ", ".join(f"{key}={value}" for key, value in trial["changes"].items())
                rows.append(f"| {line['program']} | {changes} | {trial['predicted']:.2f}× | {trial['gain']:.2f}× | {ratio:.2f} |")
    return [*rows, "", f"Within 25%: {good} of {count} trials", ""] if count else []


def peers(lines):
    rows = []
    for line in lines:
        if line["kind"] in ("optuna", "lightning") and "error" not in line:
            more = f"{line['trials']} trials" if line["kind"] == "optuna" else line["ended"]
            rows.append(f"{line['kind']} on {line['program']}: {line['apply']}, {rate(line['score'])} samples/s ({more}, {line['wall_s']:.0f} s)")
    return rows
