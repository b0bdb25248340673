#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The restorer as a program: what it is linked with, and its exit codes. restorer_test.sh WQ-TUNED-RESTORE
set -uo pipefail
restorer=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }

# It must start even when a half-done upgrade has removed all other libraries.
needed=$(readelf -d "$restorer" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p')
grep -q '^libc\.' <<<"$needed" || complain "not even the C library: '$needed'"
more=$(grep -vE '^(libc|libm)\.so|^ld-linux' <<<"$needed") && complain "it needs more than the C library: $more"

expect() { # EXIT-CODE ARGUMENTS...
  local want=$1 code=0
  shift
  "$restorer" "$@" >"$root/out" 2>&1 || code=$?
  [ "$code" = "$want" ] || complain "$*: exit $code, not $want: $(cat "$root/out")"
}
for usage in --nothing "--root" "--root /nowhere" "--root $restorer" extra; do
  # shellcheck disable=SC2086
  expect 2 $usage
done
expect 2 --root ''
expect 0 --help
grep -q '^usage: wq-tuned-restore ' "$root/out" || complain "--help: $(cat "$root/out")"
expect 0 --version
grep -qx 'wq-tuned-restore [0-9.]*\(~git[0-9a-z.]*\)\?' "$root/out" || complain "--version: $(cat "$root/out")"

# A workqueue with a value that a daemon wrote. The file `keep` says that its policy has on_exit = "keep".
tree=$root/tree wq=$root/tree/sys/devices/virtual/workqueue/kcryptd
mkdir -p "$wq" "$tree/run/wq-tuned"
echo 0 >"$wq/per_cpu"
echo 0 >"$wq/affinity_strict"
left() { # the state that a killed daemon leaves
  echo smt >"$wq/affinity_scope"
  printf '{"version": 1, "entries": [{"target": "kcryptd", "file": "affinity_scope", "inode": %s, "baseline": "default",
    "claim": ["smt"], "strict": {"file": "affinity_strict", "baseline": "0", "claim": []}, "holder": "policy",
    "note": "", "external": false}]}\n' "$(stat -c %i "$wq")" >"$tree/run/wq-tuned/owned.json"
}
holds() { [ "$(cat "$wq/affinity_scope")" = "$2" ] || complain "$1: it holds $(cat "$wq/affinity_scope"), not $2"; }
left
expect 0 --root "$tree"
holds "nothing is kept" default
grep -qx "kcryptd: back to 'default'" "$root/out" || complain "it says: $(cat "$root/out")"
left
touch "$tree/run/wq-tuned/keep"
expect 0 --root "$tree"
holds "kept" smt
expect 0 --root "$tree" --all
holds "all" default
left
exec 9>"$tree/run/wq-tuned/lock"
flock 9
expect 0 --root "$tree"
expect 75 --root "$tree" --all
holds "another is at work" smt
flock -u 9
# A mask: the old text is restored unchanged.
rm -f "$tree/run/wq-tuned/owned.json" "$tree/run/wq-tuned/keep"
mask_left() {
  echo 3 >"$wq/cpumask"
  echo 16 >"$wq/max_active"
  printf '{"version": 1, "entries": [{"target": "kcryptd", "file": "cpumask", "inode": %s, "baseline": "00000000,000000ff",
    "claim": ["ff", "3"], "strict": null, "holder": "policy", "note": "", "external": false}]}\n' "$(stat -c %i "$wq")" >"$tree/run/wq-tuned/owned.json"
}
mask_is() { [ "$(cat "$wq/cpumask")" = "$2" ] || complain "$1: the mask is $(cat "$wq/cpumask"), not $2"; }
mask_left
expect 0 --root "$tree"
mask_is "a mask" 00000000,000000ff
mask_left
touch "$tree/run/wq-tuned/keep"
expect 0 --root "$tree"
mask_is "a mask that is kept" 3
expect 0 --root "$tree" --all
mask_is "a mask, all" 00000000,000000ff
echo '{' >"$tree/run/wq-tuned/owned.json"
expect 1 --root "$tree" --all
expect 1 --root "$tree"
exit $failed
