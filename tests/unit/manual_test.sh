#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Compares the manuals with --help (tests/manuals.sh), and runs their examples as printed, on a tree without a
# daemon. manual_test.sh SOURCE-DIR BIN-DIR
set -uo pipefail
source=$(realpath "$1") bin=$(realpath "$2")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }

"$source/tests/manuals.sh" "$bin" || failed=1

# A wq-tunectl that uses a tree instead of the machine. An earlier comparison in this tree regressed.
mkdir -p "$root"/{bin,tree/sys,tree/var/lib/wq-tuned}
ln -s /sys/devices "$root/tree/sys/devices"
# (ab gets an empty directory: it writes scopes, and sys/devices of the tree is a link to the real one.)
mkdir "$root/nothing"
# shellcheck disable=SC2016 # the generated script expands these
printf '#!/bin/sh\n[ "$1" != ab ] || exec %q --root %q "$@"\nexec %q --root %q "$@"\n' \
  "$bin/wq-tunectl" "$root/nothing" "$bin/wq-tunectl" "$root/tree" >"$root/bin/wq-tunectl"
# ab runs the commands of its arms on the machine itself: no example may reach a real program.
printf '#!/bin/sh\nexit 7\n' | tee "$root"/bin/{cryptsetup,fio} >/dev/null
chmod +x "$root"/bin/*
cat >"$root/tree/var/lib/wq-tuned/verdicts.log" <<'STORE'
{"version":1,"number":1,"kernel":"6.12 cpu smt cache numa system","topology":"another","scheduler":"","class":"kcryptd-#","reference":"cache","candidate":"smt","reference_origin":"kernel","partitions":["",""],"counters":"","window":"","target":"kcryptd-7","cpus":"0-7","time":1000000000,"comparison":1,"judged":true,"verdict":"regressed","reason":"","counter":"latency","pairs":7,"e_regressed":41.5,"e_improved":0.1,"effect_percent":12.5,"interval_percent":null,"alpha":0.05,"tolerance":0,"max_pairs":64,"contention":null,"differences":[]}
STORE

examples() { # MANUAL: prints the example commands, one per line, as a reader sees them
  sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl //p' "$source/man/$1" | sed 's/^"\(.*\)"$/\1/; s/\\(dq/"/g'
}
# Exit code and output of each example on this tree, which has no daemon.
expected=(
  # wq-tunectl(1)
  '0 TARGET'
  '3 --root names a tree, which has no daemon'
  '2 no --root'
  '0 kcryptd-7'
  '0 '
  '3 '
  '2 no --root'
  '2 no --root'
  '2 no --root'
  # wq-tunectl-ab(1)
  '1 no CPUs found'
  '1 No such file or directory'
  '1 exit code 7'
  # wq-tunectl-bench(1)
  '2 no --root'
  # wq-tunectl-fleet(1)
  '1 No such file or directory'
)
mapfile -t commands < <(for one in "" -ab -bench -fleet; do examples wq-tunectl$one.1; done)
[ ${#commands[@]} = ${#expected[@]} ] || complain "${#commands[@]} examples in the manuals, ${#expected[@]} are known here"
for i in "${!commands[@]}"; do
  code=0
  said=$(cd "$root" && PATH=$root/bin:$PATH bash -o pipefail -c "${commands[i]}" 2>&1) || code=$?
  [ "$code ${expected[i]#* }" = "${expected[i]}" ] || complain "${commands[i]}: exit $code: $said"
  [[ $said == *"${expected[i]#* }"* ]] || complain "${commands[i]}: $said"
done

# The example policy is valid.
sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$source/man/wq-tuned.toml.5" | sed '1,/^\.Bd/d; /^\.Ed/,$d' >"$root/example.toml"
"$bin/wq-tunectl" check "$root/example.toml" >"$root/out" 2>&1 || complain "the policy of wq-tuned.toml(5): $(cat "$root/out")"
grep -q '3 rules, 1 host table' "$root/out" || complain "the policy of wq-tuned.toml(5): $(cat "$root/out")"
exit $failed
