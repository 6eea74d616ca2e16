#!/bin/bash
# Parity of the CUDA engine with the CPU, then its speed beside PyTorch's, on this machine. Leaves result.md beside itself, or
# in the folder given. `run.sh [FOLDER] [--sanitize]`: with --sanitize also one step of every model under
# compute-sanitizer, where it is installed (up to a quarter of an hour for memcheck and half an hour for racecheck; the
# recurrences of 512 units take four minutes each).
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

one_step() { ./parity --ignored --test-threads=1 one_step_of_everything_in_bf16; }
# Reports about kernels of our own; what the libraries' do is theirs.
reports() { grep -hE 'access at|hazard detected' "$@" | grep -vE 'at (nvjet|sm[0-9]+_|cutlass|cudnn)'; }
# One case a process, several side by side.
races() {
    local cases names=() number=0
    one_step >/dev/null 2>&1 # so that no algorithm is timed under the checker
    mapfile -t names < <(FLATOUT_TEST_CASE=none one_step 2>&1 | sed -n 's/^case: //p')
    [ ${#names[@]} -gt 0 ] || return 2
    cases=$(mktemp -d)
    for name in "${names[@]}"; do
        (
            FLATOUT_TEST_CASE=$name timeout 500 compute-sanitizer --tool racecheck --report-api-errors no --print-limit 1000 ./parity \
                --ignored --test-threads=1 one_step_of_everything_in_bf16 >"$cases/$number" 2>&1
            status=$?
            ours=$(reports "$cases/$number" | wc -l)
            ended=$(grep -qE '^test result: ok' "$cases/$number" && echo yes || echo "no ($status)")
            echo "$name: $ours reports about kernels of our own, ended: $ended" >"$cases/$number.told"
        ) &
        number=$((number + 1))
        [ $((number % 8)) != 0 ] || wait
    done
    wait
    cat "$cases"/*.told
    reports "$cases"/*[0-9] | sort | uniq -c
    grep -hq 'ended: yes$' "$cases"/*.told && ! grep -hqvE ': 0 reports.* (yes|no \(124\))$' "$cases"/*.told
    local good=$?
    rm -rf "$cases"
    return $good
}

if [ "$2" = --sanitize ] && command -v compute-sanitizer >/dev/null; then
    section "compute-sanitizer memcheck" timeout 900 compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9 ./parity --ignored --test-threads=1 one_step_of_everything
    section "compute-sanitizer racecheck" races
fi
exit $failed
