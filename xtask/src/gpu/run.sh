#!/bin/bash
# Parity of the CUDA engine with the CPU, then its speed beside PyTorch's, on this machine. Leaves result.md beside itself, or
# in the folder given. `run.sh [FOLDER] [--sanitize]`: with --sanitize also one step of every model under
# compute-sanitizer, where it is installed (up to a quarter of an hour a tool).
folder=$(realpath "${1:-$(dirname "$0")}") || exit 2
cd "$(dirname "$0")" || exit 2
result=$folder/result.md
failed=0
{
    echo "# flatout on $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)"
    echo
    echo "Date: $(date -u +%F). Driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1), $(nproc) CPUs, $(python3 -c 'import torch; print("PyTorch", torch.__version__)' 2>/dev/null || echo "no PyTorch")."
} >"$result"

section() { # title, command…
    local title=$1
    shift
    echo "== $title" >&2
    printf '\n## %s\n\n```\n' "$title" >>"$result"
    "$@" 2>&1 | grep -v -e '^$' -e '^running' -e Warning | tee -a "$result" >&2
    local status=${PIPESTATUS[0]}
    printf '```\n' >>"$result"
    [ "$status" = 0 ] || { failed=1; echo "FAILED ($status)" | tee -a "$result" >&2; }
}

section "Parity" ./parity --ignored --nocapture --test-threads=1
section "PyTorch's numbers" ./golden --ignored --nocapture --test-threads=1
section "Loss curves beside PyTorch's" env FLATOUT_TEST_PYTHON=python3 ./curves --ignored --nocapture
section "Resident data" ./cuda_bench all bf16 1 profile
section "Streamed data" ./cuda_bench all bf16 1 streamed
if python3 -c 'import torch' 2>/dev/null; then
    section "PyTorch" python3 torch_best.py bf16
fi
if [ "$2" = --sanitize ] && command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        section "compute-sanitizer $tool" timeout 900 compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 ./parity --ignored --test-threads=1 one_step_of_everything
    done
fi
exit $failed
