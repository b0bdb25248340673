#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes docs/report.png and docs/status.svg from the output of the tools: pictures.sh [BUILD-DIR]
#
# The machine is a guest with eight one-CPU sockets and a load on dm-crypt, after its first verdict. Needs chromium and
# pngquant, and what guests need (./dev fetch).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
# shellcheck source=tests/guest/common.sh
. tests/guest/common.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tests/guest/stage.sh "$build" "$work/stage"
run_in_guest "$work/boot" pictures --kernel 7.2 --smp 8,sockets=8,cores=1,threads=1 --stage "$work/stage" --timeout 1800
brought_out "$work/boot" pictures status >"$work/status"
brought_out "$work/boot" pictures report.html >"$work/report.html"

chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$work/profile" \
  --blink-settings=preferredColorScheme=1 --window-size=1100,1330 --screenshot="$work/report.png" \
  "file://$work/report.html" 2>"$work/log" || { cat "$work/log"; exit 1; }
pngquant --force --strip --output docs/report.png 32 "$work/report.png"

# Converts the terminal's lines to SVG text, and its colours to classes.
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
