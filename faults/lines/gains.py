#!/usr/bin/env python3
"""Compare promised with measured gains.

    faults/lines/gains.py FLATOUT SPEEDS.json [FOLDER]

SPEEDS.json is what measure.py wrote. For each program whose fix was measured, the gain of the first cause must contain the measured one,
with both ends of its interval widened by 25%; of a program with two faults, all causes together.
"""

import json
import pathlib
import statistics
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent


def together(gains):
    """Of a program with two faults both are repaired: what each takes of the time adds up."""
    removed = {end: min(sum(1 - 1 / gain[end] for gain in gains), 0.95) for end in ("low", "high")}
    return {end: 1 / (1 - share) for end, share in removed.items()}


def main(flatout, speeds, folder=here):
    measured = json.loads(pathlib.Path(speeds).read_text())
    groups = {"known": [], "held out": []}
    for name, runs in sorted(measured.items()):
        before, after = (runs.get(script, {}).get("steps_per_s") for script in ("train.py", "fixed.py"))
        for group, path in (("known", here / name), ("held out", here / "holdout" / name)):
            record = next((path / kind for kind in ("record", "record-gpu") if (path / kind).exists()), None)
            if not before or not after or record is None or after / before < 1.05:
                continue
            text = subprocess.run([flatout, "diagnose", str(record), "--json"], capture_output=True, text=True).stdout
            causes = [found for found in json.loads(text)["findings"] if found["kind"] == "cause" and found["severity"] in ("warning", "critical")]
            gain = causes[0].get("gain") if causes else None
            if gain and "lines2" in (path / "label.toml").read_text():
                gain = together([cause["gain"] for cause in causes if cause.get("gain")])
            groups[group].append((name, after / before, gain, causes[0]["rule"] if causes else None))
    for group, rows in groups.items():
        promised = [(name, real, gain, rule) for name, real, gain, rule in rows if gain]
        good = [row for row in promised if row[2]["low"] / 1.25 <= row[1] <= row[2]["high"] * 1.25]
        widths = [row[2]["high"] / row[2]["low"] for row in promised]
        print(f"{group}: {len(good)} of {len(promised)} within the interval widened by 25%, {len(rows) - len(promised)} without a gain; "
              f"median width {statistics.median(widths):.2f}" if widths else f"{group}: none")
        for name, real, gain, rule in rows if group == "known" else []:
            shown = f"{gain['low']:.2f}-{gain['high']:.2f}" if gain else "none"
            print(f"  {'ok ' if (name, real, gain, rule) in good else '   '}{name:<20} measured {real:.2f} promised {shown} {rule}")


if __name__ == "__main__":
    main(*sys.argv[1:])
