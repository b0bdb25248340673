#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A fleet of four guests, one after the other, and a fifth that gets the policy of all four: fleet.sh STAGE RESULTS
# [KERNEL]. RESULTS keeps the ledgers, the policy, and a folder for each boot.
#
# On eight one-CPU sockets `system` is really better, by a quarter of the latency or more. Hosts 1 and 2 measure until
# they have a verdict; hosts 3 and 4 have three pairs each, which is too little evidence alone.
#
# The shares of such hosts (docs/fleet.md), if all pairs agree, for the stakes 8, 4, 2, 1, 1/2, 1/4, 1/8:
#   16 pairs: shares of 900 900 900 392 30 6 2.5 (the cap: 0.1 + 0.9 * 1000)
#    3 pairs: shares of 7.3 6.9 5.0 2.9 1.8 1.4 1.2; E of the host alone: 4.1
# A rule must pass without the host that contributes most. That leaves one host of the first kind and two of
# the second: a mean of 17,000. For a single rule e-BH at 5% requires E = questions / 5%: 100 for the five
# questions of one class (better and worse by latency, worse by three guards), 400 if three other classes are
# busy too. So four hosts are enough. The two hosts with a verdict would have enough evidence (450 without one
# of them), but a rule needs at least four hosts.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/common.sh"

stage=${1:?} results=${2:?} kernel=${3:-7.2}
few=3 # pairs. 8 or more would count in the test whether hosts differ; with 6, a host's own E could be 20.
smp=8,sockets=8,cores=1,threads=1
ledgers=$results/ledgers
policy=$results/50-fleet.toml
tunectl=$stage/usr/bin/wq-tunectl
export COLUMNS=160 NO_COLOR=1

# Without this option, every guest has the machine id of the tree.
machine_id() { printf 'f1ee7%027d\n' "$1"; }

member() { # N [PAIRS]
  say "host $1: $([ $# -gt 1 ] && echo "$2 pairs" || echo "until it has a verdict")"
  run_in_guest "$results/host$1" fleet-member --kernel "$kernel" --smp "$smp" --stage "$stage" --timeout 1500 \
    --append "systemd.machine_id=$(machine_id "$1")${2:+ wq_tests.pairs=$2}"
  brought_out "$results/host$1" fleet-member ledger.jsonl >"$ledgers/host$1.jsonl"
}

# Prints the lines about the comparison that all hosts made: from `history --ledger`, `fleet merge` or
# `fleet show --json`.
about_dm_crypt() { jq -c 'select(.class == "kcryptd-#:#-#" and .candidate == "system" and .counter == "latency")' "$@"; }

tell() { # FILE: the evidence of one host alone
  about_dm_crypt "$1" | jq -r '"  \(.reference) -> \(.candidate): \(.pairs) pairs, E \([.better[] | exp] | add / length | . * 10 | round / 10), " +
    "\(1000 * ((.sum / .pairs | exp) - 1) | round / 10)% latency"'
}
enough_alone() { about_dm_crypt "$1" | jq '[.better[] | exp] | add / length >= 20'; }

policy_of() { "$tunectl" fleet policy --fdr 5% "$@"; }
# "QUESTIONS RULES", from the head of a policy.
passed_in() { sed -nE 's/^# Of ([0-9,]+) questions?, ([0-9,]+) rules? passed.*/\1 \2/p' "$1" | tr -d ,; }

expect_no_rule() { # WHO FILE...
  local who=$1 passed
  shift
  policy_of "$@" >"$results/too-little.toml"
  passed=$(passed_in "$results/too-little.toml")
  expect "$who: no rule" 0 "${passed#* }"
  expect "$who: no host table" 0 "$(grep -c '^\[\[host' "$results/too-little.toml" || true)"
}

measure() {
  local host
  for host in 1 2; do member $host; done
  for host in 3 4; do member $host $few; done
}

judge_alone() {
  local host file
  for host in 1 2 3 4; do
    file=$ledgers/host$host.jsonl
    say "host $host alone"
    expect "it has compared once" 1 "$(about_dm_crypt "$file" | wc -l)"
    tell "$file"
    expect "its own evidence is enough for a verdict" "$([ $host -le 2 ] && echo true || echo false)" "$(enough_alone "$file")"
    expect_no_rule "host $host" "$file"
  done
  expect "hosts" 4 "$(jq -rs 'map(.host) | unique | length' "$ledgers"/*.jsonl)"
  expect_no_rule "hosts 1 and 2, which have verdicts" "$ledgers"/host[12].jsonl
  expect_no_rule "hosts 3 and 4, which have none" "$ledgers"/host[34].jsonl
  expect_no_rule "hosts 1 to 3" "$ledgers"/host[123].jsonl
}

judge_together() {
  local questions rules pooled left needed
  say "all four"
  "$tunectl" fleet merge "$ledgers" >"$results/merged.jsonl"
  expect "hosts in the merged line" 4 "$(about_dm_crypt "$results/merged.jsonl" | jq .hosts)"
  "$tunectl" fleet show "$results/merged.jsonl"
  "$tunectl" fleet show --json "$results/merged.jsonl" >"$results/shown.jsonl"
  expect "hosts that are better by their own evidence, worse" "2 0" "$(about_dm_crypt "$results/shown.jsonl" | jq -r '"\(.hosts_better) \(.hosts_worse)"')"

  policy_of "$ledgers" >"$policy"
  cat "$policy"
  policy_of "$results/merged.jsonl" >"$results/of-merged.toml"
  expect "the same policy of what was merged" "" "$(diff <(grep -v '^# Written' "$policy") <(grep -v '^# Written' "$results/of-merged.toml") || true)"
  read -r questions rules <<<"$(passed_in "$policy")"
  expect "the rule for dm-crypt" 'scope = "system"' "$(grep -A 1 '^match = "kcryptd-' "$policy" | tail -n 1)"
  read -r pooled left <<<"$(sed -nE 's/^# .*-> system, latency, better: E ([^ ]+) \(([^ ]+) for the rule\).*/\1 \2/p' "$policy" | head -n 1)"
  needed=$((20 * questions)) # / 5%
  say "questions: $questions, rules: $rules; e-BH asks E = $needed of a single rule; the pool has $pooled, and $left without the host that contributes most"
  # For several rules e-BH requires a smaller E of each.
  awk -v e="${left:-0}" -v needed="$needed" -v rules="$rules" 'BEGIN { exit !(e * 1.005 >= needed / rules) }' ||
    die "FAILED: $left is less than e-BH asks"
  "$tunectl" check "$policy" || die "FAILED: the policy is not accepted"
}

use() {
  say "a fifth host, with this policy"
  cp -a "$stage" "$results/stage"
  install -D -m 644 "$policy" "$results/stage/usr/lib/wq-tests/50-fleet.toml"
  run_in_guest "$results/host5" fleet-policy --kernel "$kernel" --smp "$smp" --stage "$results/stage" --timeout 900 \
    --append "systemd.machine_id=$(machine_id 5)"
  rm -rf "$results/stage"
}

rm -rf "$results"
mkdir -p "$ledgers"
measure
judge_alone
judge_together
use
