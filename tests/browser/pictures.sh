#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes docs/report.png and docs/status.svg of what the tools print: pictures.sh [BUILD-DIR]
#
# The machine is a tree of a test (tests/browser/report_tree.cpp, "plain"), not a real one. Needs chromium, pngquant and
# script (bsdutils); build wq-tunectl and report-tree first.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/tests/browser/report-tree" "$work/tree" plain
"$build/daemon/wq-tunectl" report --root "$work/tree" -o "$work/report.html"
# At a real terminal, which has colours. 3: no daemon runs.
COLUMNS=108 script -qec "$build/daemon/wq-tunectl --no-pager status --root '$work/tree'" /dev/null </dev/null \
  >"$work/status" || [ $? = 3 ]

chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$work/profile" \
  --blink-settings=preferredColorScheme=1 --window-size=1100,1330 --screenshot="$work/report.png" \
  "file://$work/report.html" 2>"$work/log" || { cat "$work/log"; exit 1; }
pngquant --force --strip --output docs/report.png 32 "$work/report.png"

# The terminal's lines as text, with its colours as classes.
tr -d '\r' <"$work/status" | awk '
  function escaped(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); return text }
  {
    rest = $0; line = ""; width = 0; open = 0
    while (match(rest, /\033\[[0-9]*m/)) {
      line = line escaped(substr(rest, 1, RSTART - 1)); width += RSTART - 1
      code = substr(rest, RSTART + 2, RLENGTH - 3)
      if (open) line = line "</tspan>"
      open = code + 0 != 0
      if (open) line = line "<tspan class=\"c" code "\">"
      rest = substr(rest, RSTART + RLENGTH)
    }
    line = line escaped(rest) (open ? "</tspan>" : ""); width += length(rest)
    if (width > widest) widest = width
    lines[NR] = line
  }
  END {
    w = widest * 7.83 + 32; h = NR * 18 + 28
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n", w, h, w, h
    print "<style>text { font: 13px \"DejaVu Sans Mono\", Menlo, Consolas, monospace; fill: #e3e1dc; white-space: pre } .c1 { font-weight: bold }"
    print ".c32 { fill: #8bcaa3 } .c33 { fill: #e0c080 }</style>"
    printf "<rect width=\"%d\" height=\"%d\" rx=\"6\" fill=\"#17191c\"/>\n", w, h
    for (i = 1; i <= NR; i++)
      if (lines[i] != "") printf "<text x=\"16\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", i * 18 + 10, lines[i]
    print "</svg>"
  }' >docs/status.svg
ls -l docs/report.png docs/status.svg
