#!/bin/bash
# The machine as this program finds it: one that swaps. Needs root for half a minute of swap space.
file=$(mktemp --tmpdir="${TMPDIR:-/var/tmp}" flatout-swap-XXXXXX)
trap 'swapoff "$file" 2>/dev/null; rm -f "$file"' EXIT
chmod 600 "$file"
dd if=/dev/zero of="$file" bs=1M count=320 status=none && mkswap -q "$file" >/dev/null && swapon "$file" || exit 77
"$@"
