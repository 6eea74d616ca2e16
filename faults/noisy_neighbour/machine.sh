#!/bin/bash
# The machine as this program finds it: two others for every CPU it may use.
others=()
for _ in $(seq $((2 * $(nproc)))); do
    (while :; do :; done) &
    others+=($!)
done
trap 'kill "${others[@]}"; wait 2>/dev/null' EXIT
"$@"
