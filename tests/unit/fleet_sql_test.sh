#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The SQL of docs/fleet.md gives what `wq-tunectl fleet show` gives, to nine digits: fleet_sql_test.sh SOURCE-DIR BIN-DIR
# Exits 77 where there is no sqlite3 with math functions.
set -euo pipefail
source=$1 bin=$2
if ! sqlite3 :memory: 'SELECT ln(2)' >/dev/null 2>&1; then
  echo "sqlite3 with math functions is not installed"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Ledgers of 40 hosts of two kinds, and newer ones of some of them. The numbers are drawn by a fixed rule.
awk 'BEGIN {
  srand(1)
  for (export = 0; export < 2; export++)
    for (host = 0; host < (export ? 15 : 40); host++)
      for (entry = 0; entry < 4; entry++) {
        printf "{\"v\":1,\"host\":\"%032x\",\"at\":%d,\"machine\":{\"arch\":\"x86_64\",\"vendor\":\"V\",\"model\":\"M %d\",", host, 1700000000 + 100 * export + entry, host % 2
        printf "\"packages\":1,\"cores\":%d,\"llc_cores\":8},\"kernel\":\"6.12 cpu smt\",\"topology\":\"t%d\",\"scheduler\":\"\",", 8 + host % 2, host % 3
        printf "\"class\":\"c%d\",\"reference\":\"cache\",\"reference_origin\":\"%s\",\"candidate\":\"smt\",", entry, host % 5 ? "kernel" : "policy"
        printf "\"partitions\":[1,4],\"strict\":false,\"counter\":\"latency\",\"guard\":false,\"tolerance\":0.0,\"window\":\"w\",\"n\":0,\"pairs\":%d,", 10 + host
        for (side = 0; side < 2; side++) {
          printf "\"%s\":[", side ? "worse" : "better"
          for (stake = 0; stake < 7; stake++) printf "%s%.15g", stake ? "," : "", 40 * rand() - 25
          printf "],"
        }
        printf "\"sum\":%.15g,\"squares\":%.15g}\n", rand() - 0.5, 1 + rand()
      }
}' >"$work/ledgers.jsonl"

"$bin/wq-tunectl" fleet show --json "$work/ledgers.jsonl" |
  jq -c '[({machine, kernel, class, reference, reference_origin, candidate, strict: (if .strict then 1 else 0 end), counter} | tojson),
          .hosts, .pairs, .log_e_better, .log_e_worse, .effect_percent]' | sort >"$work/shown"
# shellcheck disable=SC2016 # these backticks are Markdown's
sed -n '/^```sql/,/^```/p' "$source/docs/fleet.md" | sed '/^```/d' >"$work/query.sql"
{
  echo 'CREATE TABLE lines (line TEXT);'
  printf '.mode list\n.separator "\\001" "\\n"\n'
  echo ".import '$work/ledgers.jsonl' lines"
  printf '.mode json\n'
  cat "$work/query.sql"
} | sqlite3 :memory: | jq -c '.[] | [.shown, .hosts, .pairs, .log_e_better, .log_e_worse, .effect_percent]' | sort >"$work/queried"

[ "$(wc -l <"$work/shown")" -gt 10 ] || { echo "FAILED: nothing to compare: $(cat "$work/shown")"; exit 1; }
jq -n --slurpfile a "$work/shown" --slurpfile b "$work/queried" '
  def near($x; $y): ($x - $y | fabs) <= 1e-9 * ([1e-3, ($x | fabs)] | max);
  if ($a | length) != ($b | length) then error("\($a | length) rows, but \($b | length) by SQL") else empty end,
  (range($a | length) as $i | ($a[$i] | .[0] |= fromjson) as $x | ($b[$i] | .[0] |= fromjson) as $y |
   if $x[0] == $y[0] and $x[1] == $y[1] and $x[2] == $y[2] and ([range(3; 6) | near($x[.]; $y[.])] | all) then empty
   else error("row \($i): \($x) by show, \($y) by SQL") end)'
