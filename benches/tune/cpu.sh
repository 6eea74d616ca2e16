#!/bin/bash
# All measurements of tuning on the CPU, unattended: benches/tune/cpu.sh RESULTS.jsonl [MINUTES]
# Nothing else may run meanwhile. Called again with the same file it goes on where it stopped.
# FLATOUT: the binary (default target/release/flatout). PYTHON: one with torch (default python3). The peers are those of
# benches/requirements.txt; where they are missing, their lines say so.
set -u
cd "$(dirname "$0")/../.."
results=${1:?the results file} minutes=${2:-20}
"${PYTHON:-python3}" benches/tune/measure.py --device cpu --flatout "${FLATOUT:-target/release/flatout}" --results "$results" --minutes "$minutes" --seconds 1.2 --budget 55 --again 2
"${PYTHON:-python3}" benches/tune/measure.py --results "$results" --table > "${results%.jsonl}.md"
