#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The two programs as a user meets them, without a daemon: exit codes, one line of complaint, widths. cli_test.sh BIN-DIR
set -uo pipefail
bin=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }

expect() { # EXIT-CODE ARGUMENTS...
  local want=$1 code=0
  shift
  "$bin/wq-tunectl" "$@" >"$root/out" 2>"$root/err" </dev/null || code=$?
  [ "$code" = "$want" ] || complain "wq-tunectl $*: exit $code, not $want: $(cat "$root/err")"
}
one_line() { [ "$(wc -l <"$root/err")" = 1 ] || complain "$1: not one line: $(cat "$root/err")"; }
synthetic='synthetic:pack:2 l3:1 core:12 pu:2'

for usage in "" "nothing" "plan --nothing" "plan --shard-size 0" "plan --shard-size x" "topology --shard-size 65537" \
  "plan --kernel-scopes cpus" "plan --kernel-scopes cpu,cpu" "pin one" "explain" "undo" "status extra"; do
  # shellcheck disable=SC2086
  expect 2 $usage
done
for bad in fsroot:/nowhere xml:/nowhere synthetic:nonsense live:x nothing; do
  for command in topology plan; do
    expect 1 "$command" --topology "$bad"
    one_line "$command --topology $bad"
  done
done
expect 1 explain nothing --topology "$synthetic"
one_line "explain nothing"
expect 1 plan --config /nowhere.toml
expect 1 check /nowhere.toml

expect 0 --help
expect 0 --version
expect 0 plan --topology "$synthetic"
expect 0 explain '*' --topology "$synthetic"
expect 0 topology --topology "$synthetic" --json
expect 3 --root "$root" status --json
grep -q '"state":"absent"' "$root/out" || complain "status without a daemon: $(cat "$root/out")"

# A contract that scripts rely on, at a size where the shards differ.
expect 0 plan --json --topology "$synthetic" --shard-size 8 --kernel-scopes cpu,smt,cache,numa,system
for part in '"planned":"smt"' '"action":"write"' '"effective":"cache"' '"cores_per_pool":[12,12],"pools":2,"scope":"cache"'; do
  grep -qF "$part" "$root/out" || complain "plan --json has no $part: $(cat "$root/out")"
done
expect 0 plan --json --topology "$synthetic" --kernel-scopes cpu,smt,cache_shard,cache,numa,system
grep -qF '"planned":"cache_shard"' "$root/out" || complain "a kernel with cache_shard: $(cat "$root/out")"

for columns in 30 40 80; do
  COLUMNS=$columns expect 0 plan --topology "$synthetic"
  widest=$(wc -L <"$root/out")
  [ "$columns" -lt 80 ] || [ "$widest" -le "$columns" ] || complain "plan is $widest wide on $columns columns"
done

code=0
"$bin/wq-tuned" --nothing >/dev/null 2>&1 || code=$?
[ $code = 2 ] || complain "wq-tuned --nothing: exit $code"
exit $failed
