#!/bin/bash
# Runs the fault programs under `flatout run` and keeps their records beside them.
#
#   faults/record_all.sh [cpu|gpu|all] [NAME…]
#
# Programs that need no GPU run on two CPUs each, several side by side; those that need one run alone on the other CPUs.
# FLATOUT: the binary (target/release/flatout). PYTHON: a Python with PyTorch (python3). RECORDS: where `<name>/record`
# goes (this folder). A program whose record is there already is passed over; FORCE=1 runs it again.
# A program with a `machine.sh` beside it runs under that: it makes the machine what the fault needs, then runs its arguments.
set -u
here=$(cd "$(dirname "$0")" && pwd)
FLATOUT=${FLATOUT:-$here/../target/release/flatout}
PYTHON=${PYTHON:-python3}
RECORDS=${RECORDS:-$here}
what=${1:-all}
shift $(($# > 0))
names=("$@")

programs() { # needs
    for label in "$here"/*/label.toml "$here"/holdout/*/label.toml; do
        [ -f "$label" ] || continue
        grep -q "^needs *= *\"$1\"" "$label" || continue
        local name=${label#"$here"/}
        name=${name%/label.toml}
        [ ${#names[@]} -eq 0 ] || [[ " ${names[*]} " == *" $name "* ]] || continue
        echo "$name"
    done
}

anonymous() { # record: nothing in it may tell whose machine it was
    local root
    root=$(cd "$here/.." && pwd)
    find "$1" -type f -name '*.json*' ! -name '*.zst' -exec sed -i \
        -e "s#$root/##g; s#\"$root\"#\".\"#g; s#$(dirname "$(command -v "$PYTHON")")/##g; s#\"$(hostname)\"#\"host\"#g" \
        -e 's#GPU-[0-9a-f-]\{36\}#GPU-0#g; s#"/tmp/[^"]*/#"/tmp/#g' {} +
    # Stacks: where libraries are installed is private, and what was imported before the first step fills most of the file.
    find "$1" -type f \( -name stacks.jsonl -o -name windows.jsonl -o -name timeline.jsonl \) -exec sed -i \
        -e 's#(/[^():]*/\(site\|dist\)-packages/#(/site-packages/#g; s#(/[^():]*/lib/python#(/lib/python#g' {} +
    [ -f "$1/stacks.jsonl" ] || return 0
    "$PYTHON" - "$1/stacks.jsonl" <<'PYTHON_END'
import json, sys
ticks = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
for tick in ticks:
    kept, others, early = [], {}, 3
    for stack in sorted(tick["stacks"], key=lambda stack: -stack["count"]):
        told = stack.get("phase") or stack.get("worker")
        early -= not told
        if len(kept) < 20 and (told or early >= 0):
            kept.append(stack)
            continue
        # Counted on, so that shares stay true.
        key = (stack.get("phase"), stack.get("worker"))
        others.setdefault(key, {**stack, "frames": [], "count": 0})["count"] += stack["count"]
    tick["stacks"] = kept + list(others.values())
with open(sys.argv[1], "w") as file:
    file.writelines(json.dumps(tick, separators=(",", ":")) + "\n" for tick in ticks)
PYTHON_END
}

record() { # name, CPU list
    local target=$RECORDS/$1/record machine=$here/$1/machine.sh home
    [ -z "${FORCE:-}" ] && [ -f "$target/run.json" ] && return
    home=$(mktemp -d)
    [ -x "$machine" ] || machine=env
    # The record's own paths are relative to the repository's root, wherever that is.
    (cd "$here/.." && FLATOUT_HOME=$home PYTHONPATH=$here/../python PYTHON=$PYTHON timeout 120 taskset -c "$2" "$machine" "$FLATOUT" run --quiet \
        --name "$(basename "$1")" -- "$PYTHON" "faults/$1/train.py") >"$home/out" 2>&1
    local code=$? run
    run=$(ls -d "$home"/runs/*/ 2>/dev/null | head -1)
    if [ -n "$run" ] && [ -s "$run/steps.jsonl" ]; then
        mkdir -p "$target" && rm -rf "${target:?}"/* && cp -r "$run"/* "$target"/
        rm -f "$target/trace.json" # megabytes; what was read from it lies in profile.json
        anonymous "$target"
        echo "recorded $1 (exit $code)"
    else
        echo "FAILED $1 (exit $code)"
        tail -5 "$home/out"
    fi
    rm -rf "$home"
}

cpus=$(nproc)
lanes=$((cpus >= 8 ? cpus / 4 : 1))
cpu_programs() {
    local list=($(programs cpu)) lane
    for ((lane = 0; lane < lanes; lane++)); do
        (
            first=$((cpus - 2 * (lane + 1)))
            for ((index = lane; index < ${#list[@]}; index += lanes)); do
                # No GPU in sight: what others do on one is no part of these.
                CUDA_VISIBLE_DEVICES= record "${list[index]}" "$first,$((first + 1))"
            done
        ) &
    done
    wait
}
gpu_programs() {
    local last=$((cpus - 1 - (lanes > 1 ? 2 * lanes : 0)))
    for name in $(programs gpu); do
        record "$name" "0-$last"
    done
}

case $what in
cpu) cpu_programs ;;
gpu) gpu_programs ;;
all) cpu_programs & gpu_programs; wait ;;
*) echo "usage: $0 [cpu|gpu|all] [NAME…]" >&2; exit 2 ;;
esac
