"""What a terminal showed, with its colours, as a page: the command as argument, the output on stdin. Ends with the last whole finding
that fits."""

import html
import re
import sys

COLOURS = {"1": "font-weight:bold", "2": "opacity:.65", "31": "color:#ff8a80", "32": "color:#6fd3a0", "33": "color:#ffc062", "36": "color:#7ecbe0"}
# The first font has Chinese characters exactly two cells wide, as terminals do.
STYLE = "margin:0;padding:18px;background:#14171b;color:#e6e9ed;font:14px/1.4 'Noto Sans Mono CJK SC','DejaVu Sans Mono',monospace"


def span(match):
    codes = match.group(1).split(";")
    if codes in (["0"], [""]):
        return "</span>"
    return '<span style="' + ";".join(COLOURS.get(code, "") for code in codes) + '">'


ROWS = 31
lines = sys.stdin.read().replace("\r", "").split("\n")
if len(lines) > ROWS:
    ends = [row for row, line in enumerate(lines[:ROWS]) if not line.strip()]
    lines = lines[: ends[-1]] if ends else lines[:ROWS]
text = html.escape("\n".join(lines), quote=False)
text = re.sub("\x1b\\[([0-9;]*)m", span, text)
print(f'<!doctype html><meta charset="utf-8"><body style="margin:0;background:#14171b"><pre style="{STYLE}">$ {html.escape(sys.argv[1])}\n{text}</pre>')
