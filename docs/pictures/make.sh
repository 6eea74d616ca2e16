#!/bin/sh
# Makes the pictures of the README from what flatout really prints: needs a built flatout, chromium and python3.
#
#     docs/pictures/make.sh [target/release/flatout]
set -eu
cd "$(dirname "$0")/../.."
flatout=$(realpath "${1:-target/release/flatout}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
record=faults/gpu_waits_for_python_items/record

shot() { # page, picture, width, height
    chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
        --virtual-time-budget=3000 --window-size="$3,$4" --screenshot="$2" "file://$1" >/dev/null 2>&1
}

for language in en zh-CN; do
    "$flatout" report "$record" --lang "$language" --html "$work/report.html" >/dev/null 2>&1
    shot "$work/report.html" "docs/pictures/report.$language.png" 1100 1050
    # `script` gives it a terminal, so that it prints in colour.
    script -qec "stty cols 80; '$flatout' diagnose $record --lang $language" /dev/null >"$work/text"
    python3 docs/pictures/terminal.py "flatout diagnose last" <"$work/text" >"$work/terminal.html"
    rows=$(wc -l <"$work/terminal.html")
    shot "$work/terminal.html" "docs/pictures/terminal.$language.png" 860 $((rows * 20 + 36))
done
ls -l docs/pictures/*.png
