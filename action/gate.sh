#!/usr/bin/env bash
# Runs a training program, compares it with the baseline, writes the job's summary and annotations, and keeps a new baseline.
# Everything comes through FLATOUT_GATE_* variables; see action.yml. Runs anywhere: without GitHub the summary goes to stdout.
# Exit status: 0 passed or no baseline yet, 1 slower than the baseline, 2 the gate itself could not work.
set -uo pipefail

command_text=${FLATOUT_GATE_COMMAND:-}
baseline=${FLATOUT_GATE_BASELINE:-main}
fail_if=${FLATOUT_GATE_FAIL_IF:-slower=5%}
steps=${FLATOUT_GATE_STEPS:-}
retries=${FLATOUT_GATE_RETRIES:-1}
save=${FLATOUT_GATE_SAVE:-auto}
default_branch=${FLATOUT_GATE_DEFAULT_BRANCH:-false}
summary=${GITHUB_STEP_SUMMARY:-/dev/stdout}
outputs=${GITHUB_OUTPUT:-/dev/null}
# `last` and baselines must be those of this folder, whatever the program does.
export FLATOUT_HOME=${FLATOUT_HOME:-$PWD/.flatout}

fail() {
    printf '::error title=flatout gate::%s\n' "$1"
    exit 2
}

output() {
    printf '%s=%s\n' "$1" "$2" >> "$outputs"
}

# Several lines are one word each; a single line is split at spaces. Neither is evaluated.
words=()
if [[ $command_text == *$'\n'* ]]; then
    while IFS= read -r line || [[ -n $line ]]; do
        [[ -n $line ]] && words+=("$line")
    done <<< "$command_text"
else
    read -r -a words <<< "$command_text"
fi
((${#words[@]})) || fail "\`command\` is empty: name the training program"
[[ $retries =~ ^[0-9]$ ]] || fail "\`retries\` must be a digit"
[[ $steps =~ ^[0-9]*$ ]] || fail "\`steps\` must be a number"
case $save in auto | always | never) ;; *) fail "\`save\` must be auto, always or never" ;; esac
command -v flatout > /dev/null || fail "flatout is not on PATH"
command -v python3 > /dev/null || fail "python3 is not on PATH"

scratch=$(mktemp -d) || fail "no temporary folder"
trap 'rm -rf "$scratch"' EXIT

# The program's own output stays in the log; workflow commands in it are not ours to obey.
record() {
    local options=(--name "gate-$baseline" --json "$scratch/run.json")
    [[ -n $steps ]] && options+=(--steps "$steps")
    local token="flatout-gate-$RANDOM$RANDOM$RANDOM"
    rm -f "$scratch/run.json"
    printf '::group::flatout run %s\n::stop-commands::%s\n' "${words[0]}" "$token"
    flatout run "${options[@]}" -- "${words[@]}"
    local status=$?
    printf '\n::%s::\n::endgroup::\n' "$token"
    run=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["run"])' "$scratch/run.json" 2> /dev/null)
    return $status
}

lint() {
    [[ -n ${FLATOUT_GATE_LINT:-} ]] || return 0
    local paths
    read -r -a paths <<< "$FLATOUT_GATE_LINT"
    flatout lint --format github -- "${paths[@]}"
    (($? <= 1)) || fail "flatout lint could not read \`lint\`"
}

keep() {
    flatout baseline save "$baseline" "$run" --replace || fail "the baseline could not be saved"
    output saved true
}

run=
lint
record
status=$?
((status == 0)) || fail "the program ended with status $status"
[[ -n $run ]] || fail "flatout run left no record"

names=$(flatout baseline list --json | python3 -c 'import json, sys; print("\n".join(one["name"] for one in json.load(sys.stdin)["baselines"]))') ||
    fail "the baselines could not be listed"
if ! grep -qxF -- "$baseline" <<< "$names"; then
    {
        printf '## flatout: no baseline %s yet\n\n' "$baseline"
        flatout report "$run" --md
    } >> "$summary"
    if [[ $save == never ]]; then
        printf '::warning title=flatout gate::there is no baseline %s, and save is never: nothing was compared\n' "$baseline"
    else
        printf '::notice title=flatout gate::there was no baseline %s: this run is the first\n' "$baseline"
        keep
    fi
    output result no-baseline
    output run "$run"
    exit 0
fi

for ((attempt = 0; attempt <= retries; attempt++)); do
    if ((attempt > 0)); then
        printf 'slower than the baseline: run %d of %d\n' $((attempt + 1)) $((retries + 1))
        record || fail "the program ended with another status the second time"
        [[ -n $run ]] || fail "flatout run left no record"
    fi
    flatout compare --baseline "$baseline" "$run" --fail-if "$fail_if" --md --annotate > "$scratch/all" 2> "$scratch/why"
    status=$?
    cat "$scratch/why" >&2
    ((status <= 1)) || fail "the runs could not be compared: $(head -n 1 "$scratch/why")"
    ((status == 1)) || break
done

grep '^::' "$scratch/all"
if ((status == 0)); then
    result=passed heading="flatout: not slower than \`$baseline\` ($fail_if)"
else
    result=failed heading="flatout: slower than \`$baseline\` ($fail_if)"
fi
{
    printf '## %s\n\n' "$heading"
    ((status == 0)) || sed 's/^/> /' "$scratch/why"
    printf '\n'
    grep -v '^::' "$scratch/all"
} >> "$summary"
output result "$result"
output run "$run"
if [[ $save == always || ($save == auto && $default_branch == true && $result == passed) ]]; then
    keep
fi
exit "$status"
