#!/bin/bash
# All measurements of tuning on a GPU machine, the most important first: benches/tune/h200.sh FOLDER [MINUTES]
# Called again with the same folder it goes on where it stopped.
# FLATOUT: the binary (default target/release/flatout). PYTHON: one with torch (default python3).
set -u
cd "$(dirname "$0")/../.."
out=${1:?a folder for the results} minutes=${2:-25}
mkdir -p "$out"
measure() { "${PYTHON:-python3}" benches/tune/measure.py --device cuda --flatout "${FLATOUT:-target/release/flatout}" --results "$out/tune.jsonl" "$@"; }
measure --minutes "$minutes" --seconds 1 --budget 75 --again 2
measure --table > "$out/tune.md"
