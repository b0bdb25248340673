#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Checks the folders of daemon/ against the table in docs/architecture.md: a file may include only files of
# its own folder and of folders above it in the table. No two folders may have a file of the same base name.
# `./dev lint` runs it.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files daemon | awk '
  FILENAME == "docs/architecture.md" { if (match($0, /^\| `[a-z\/]+` \|/)) rank[substr($0, 4, RLENGTH - 6)] = ++rows; next }
  !/\.(cpp|h|c)$/ { next }
  {
    file = substr($0, 8)
    folder = file
    if (!sub(/\/[^\/]*$/, "", folder)) next # main programs may include every folder
    if (!(folder in rank)) { print file ": docs/architecture.md does not name its folder"; bad = 1; next }
    name = substr(file, length(folder) + 2)
    sub(/\..*/, "", name)
    if (name in home && home[name] != folder) { print file ": " home[name] " has a file of this name too"; bad = 1 }
    home[name] = folder
    while ((getline line < $0) > 0) {
      if (line !~ /^#include "[a-z_\/]+\//) continue
      split(line, quoted, "\"")
      other = quoted[2]
      sub(/\/[^\/]*$/, "", other)
      if (!(other in rank) || rank[other] > rank[folder]) { print file ": includes " quoted[2] ", a layer above"; bad = 1 }
    }
    close($0)
  }
  END { if (!rows) print "no table of folders in docs/architecture.md"; exit bad || !rows }
' docs/architecture.md -
