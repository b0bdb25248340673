#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Writes the results of the boots of the check `pods-row` into a page, between its two marks:
#   table.sh PAGE.md RESULTS-DIR...
# Each folder is named rows-NAME-KERNEL. If a boot has no folder (it was not tried), its row in the page
# stays.
set -euo pipefail
page=$1
shift
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
{
  printf 'Kernels:'
  {
    for dir in "$@"; do sed -n 's/^kernel: //p' "$dir/pods-row.out" 2>/dev/null || true; done
    sed -n 's/^Kernels: \(.*\)[.]$/\1/p' "$page" | tr -s ', ' '\n'
  } | sort -uV | paste -sd, | sed 's/,/, /g; s/^/ /; s/$/./'
  echo
  echo "| topology | kernel | outermost cache in sysfs | \`cache\` | \`cache_shard\` | \`numa\` | planned | topology, plan, dump agree |"
  echo "|---|---|---|---|---|---|---|---|"
  for dir in "$@"; do
    name=${dir##*/rows-}
    begin="| ${name%-*} | ${name##*-} |"
    if [ -d "$dir" ]; then
      row=$(sed -n 's/^row|//p' "$dir/pods-row.out" 2>/dev/null | sed 's/|/ | /g')
      echo "$begin ${row:-the boot failed, or the check ended early} |"
    else
      grep -F -- "$begin" "$page" || echo "$begin not tried |"
    fi
  done
} >"$rows"
awk -v rows="$rows" '
  /^<!-- pods: end -->/ { skipping = 0 }
  !skipping
  /^<!-- pods: begin/ { skipping = 1; while ((getline line < rows) > 0) print line }' "$page" >"$page.new"
grep -q '^<!-- pods: begin' "$page.new" || { rm "$page.new"; echo "$page has no marks for the table"; exit 1; }
mv "$page.new" "$page"
cat "$rows"
