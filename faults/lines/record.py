#!/usr/bin/env python3
"""Turn the record of a run into a small, anonymous one that can be committed.

    faults/lines/record.py RECORD NAME TARGET

RECORD is a record folder of `flatout run`, NAME the program's folder below `faults/lines`
(`clickstream`; held-out ones: `holdout/NAME`), TARGET the folder to write.

Anonymous: paths below the program's folder start with `faults/lines/NAME/`, paths of installed packages with
`/site-packages/`, those of the standard library with `/lib/python3.12/`. Host name, kernel, GPU UUIDs, temporary folders and
process ids are replaced; process ids keep their order.

Small: stacks that differ only in line numbers of libraries are merged. Of adjacent library frames, the first and the last of
each file are kept, and for stacks below 5% of their tick the first and the last of each package. Beyond the costliest stacks
of a tick, the others are cut to the program's own frames and merged. Every sample stays in `count` and `ms`, with its
`phase`, `gil`, `blocked`, `worker` and `gpu`, so shares stay true. Facts that repeat the one before are dropped.
"""

import json
import pathlib
import re
import sys

# Stacks per tick, per GPU window, and per tick where there are GPU windows: the samples of the windows stand for the run.
MOST_STACKS = 36
MOST_STACKS_TRACED = 30
MOST_STACKS_BESIDE = 14
# Stacks of the time before the first step that keep library frames.
EARLY = 2
# Stacks with less than this share of the time of their tick are shortened more.
SMALL = 0.05
FILES = ["facts", "samples", "steps", "events", "stacks", "lines", "windows"]
FIRST_PROCESS = 1000
LIBRARY = re.compile(r"/site-packages/|/lib/python|<frozen|<string>|_flatout_probe")


def main(source, name, target):
    source, target = pathlib.Path(source), pathlib.Path(target)
    folder = json.loads((source / "run.json").read_text())["folder"]

    def clean(text):
        text = text.replace(folder + "/", f"faults/lines/{name}/")
        text = re.sub(r'/[^\s"():]*/(?:site|dist)-packages/', "/site-packages/", text)
        text = re.sub(r'/[^\s"():]*/bin/(python[0-9.]*)', r"\1", text)
        text = re.sub(r'/[^\s"():]*/lib/python', "/lib/python", text)
        text = re.sub(r"GPU-[0-9a-f-]{36}", "GPU-0", text)
        return re.sub(r'/tmp/[^\s"():,]+', "/tmp/folder", text)

    target.mkdir(parents=True, exist_ok=True)
    info = json.loads(clean((source / "run.json").read_text()))
    (target / "run.json").write_text(json.dumps(run_info(info, name), indent=2) + "\n")
    records = {file: read(source / f"{file}.jsonl", clean) for file in FILES}
    renumber(records)
    records["facts"] = changed(records["facts"])
    probed = any(stack.get("phase") for tick in records["stacks"] for stack in tick["stacks"])
    limits = {"windows": MOST_STACKS_TRACED, "stacks": MOST_STACKS_BESIDE if records["windows"] else MOST_STACKS}
    for file, most in limits.items():
        for tick in records[file]:
            if "stacks" in tick:
                tick["stacks"] = thin(tick["stacks"], most, probed)
            for stack in tick.get("launches", []):
                stack["frames"] = shorten(stack["frames"])
    for file, lines in records.items():
        if lines:
            text = "".join(json.dumps(rounded(line), separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
            (target / f"{file}.jsonl").write_text(text)


def read(path, clean):
    if not path.exists():
        return []
    return [json.loads(line) for line in clean(path.read_text()).splitlines() if line.strip()]


def run_info(info, name):
    program = name.rsplit("/", 1)[-1]
    info["id"] = info["id"].rsplit("-", 1)[0] + "-" + program
    info["name"] = program
    info["folder"] = "."
    info["command"] = [f"faults/lines/{name}/{part}" if part == "train.py" else part for part in info["command"]]
    info["host"].update(name="host", kernel="linux")
    return info


def renumber(records):
    """Replaces process ids everywhere, in their order."""
    gpu_processes = [
        process
        for sample in records["samples"]
        for gpu in (sample.get("gpus") or {}).values()
        for process in (gpu or {}).get("processes") or []
    ]
    trees = [sample["processes"] for sample in records["samples"] if sample.get("processes")]
    for process in gpu_processes:
        process.pop("command", None)
    holders = gpu_processes + [event for event in records["events"] if event["kind"] == "process"]
    parents = [process for tree in trees for process in tree.values() if process and "parent" in process]
    facts = [fact for fact in records["facts"] if fact["key"] == "process"]
    ids = {holder["pid"] for holder in holders} | {int(pid) for tree in trees for pid in tree}
    ids |= {process["parent"] for process in parents} | {fact["value"] for fact in facts}
    new = {pid: FIRST_PROCESS + at for at, pid in enumerate(sorted(ids))}
    for holder in holders:
        holder["pid"] = new[holder["pid"]]
    for process in parents:
        process["parent"] = new[process["parent"]]
    for fact in facts:
        fact["value"] = new[fact["value"]]
    for tree in trees:
        renamed = {str(new[int(pid)]): process for pid, process in tree.items()}
        tree.clear()
        tree.update(renamed)


def changed(facts):
    """Without facts that repeat the one before."""
    known, kept = {}, []
    for fact in facts:
        key, rest = (fact["key"], fact.get("scope")), (fact["value"], fact.get("place"))
        if known.get(key) != rest:
            kept.append(fact)
        known[key] = rest
    return kept


def thin(stacks, most, probed):
    # What ran before the first step has no phase: imports, mostly.
    early = [stack for stack in stacks if probed and not stack.get("phase") and not stack.get("worker")]
    merged = merge([stack for stack in stacks if stack not in early], shorten)
    enough = sum(time_ms(stack) for stack in merged) * SMALL
    kept = [stack for stack in merged if time_ms(stack) >= enough]
    rest = merge(merged[len(kept) :], by_package)
    early = merge(early, ends)
    early = early[:EARLY] + merge(early[EARLY:], own_frames)
    for cut in (ends, own_frames, no_frames):
        if len(kept) + len(rest) + len(early) <= most:
            break
        room = max(most * 3 // 4 - len(kept), 0)
        kept, rest = kept + rest[:room], merge(rest[room:], cut)
    return merge(kept + rest + early, all_frames)


def merge(stacks, cut):
    """Sums up the stacks that are the same after `cut`, the costliest first; lines of libraries make no difference."""
    groups = {}
    for stack in sorted(stacks, key=time_ms, reverse=True):
        frames = cut(stack["frames"])
        same = tuple(re.sub(r":\d+\)$", "", frame) if LIBRARY.search(frame) else frame for frame in frames)
        key = (same, *(stack.get(field) for field in ("phase", "gil", "blocked", "worker", "gpu")))
        group = groups.get(key)
        if group is None:
            groups[key] = {**stack, "frames": frames}
            continue
        group["count"] += stack["count"]
        if "ms" in stack:
            group["ms"] = group.get("ms", 0) + stack["ms"]
    return sorted(groups.values(), key=time_ms, reverse=True)


def time_ms(stack):
    return stack.get("ms") or 50 * stack["count"]


def file_of(frame):
    return frame.rsplit(" (", 1)[-1].rsplit(":", 1)[0]


def package_of(frame):
    path = file_of(frame)
    found = re.search(r"(?:/site-packages/|/lib/python[^/]*/)([^/]*)", path)
    return found.group(1) if found else path


def shorten(frames, group=file_of):
    """Of adjacent library frames of the same file (or package) the first and the last; of an import its first frame."""
    kept = []
    for at, frame in enumerate(frames):
        if not LIBRARY.search(frame):
            kept.append(frame)
            continue
        if frame.startswith("<module> ("):
            return kept + [frame]
        before, after = (group(frames[other]) if 0 <= other < len(frames) else "" for other in (at - 1, at + 1))
        inside = before == group(frame) == after
        # `_wrapped_call_impl` calls `_call_impl`: one of the two is enough.
        called = at > 0 and file_of(frames[at - 1]) == file_of(frame) and "torch/nn/modules/module.py" in frame
        if not inside and not called:
            kept.append(frame)
    return kept


def by_package(frames):
    """The same by package; between two of the program's own frames only the first and last frame of libraries."""
    kept, run = [], []
    for frame in frames:
        if LIBRARY.search(frame):
            run.append(frame)
        else:
            kept += run[:1] + run[1:][-1:] + [frame]
            run = []
    return kept + shorten(run, package_of)


def all_frames(frames):
    return frames


def no_frames(frames):
    return []


def ends(frames):
    """The program's own frames, then the first and last frame of what its innermost line called."""
    own = own_frames(frames)
    called = frames[frames.index(own[-1]) + 1 :] if own else frames
    return own + called[:1] + called[1:][-1:]


def own_frames(frames):
    return [frame for frame in frames if not LIBRARY.search(frame)]


def rounded(value, key=""):
    if isinstance(value, float):
        if key.endswith("ms"):
            return round(value, 1 if abs(value) >= 10 else 3)
        return float(f"{value:.4g}") if key.endswith("_s") else round(value, 4)
    if isinstance(value, dict):
        return {inner: rounded(part, inner) for inner, part in value.items()}
    if isinstance(value, list):
        return [rounded(part, key) for part in value]
    return value


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
