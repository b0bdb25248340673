# SPDX-License-Identifier: LGPL-2.1-or-later
# A good scope is kept, also after a kill, and an order compares another one.
# timeout: 800
. lib.sh

crypt_c0
load_on c0 2 --rate_iops=200 # the cost is not of the load
cost_of "$(other_scope)" 090
trap 'cost_of_nothing; load_off' EXIT

note "-- better: the kernel had a pool for each CPU, auto plans one"
# Latency is counted, by probes, and cannot decide.
window=600ms washout=100ms trial_policy auto "counters = [\"file:$cost\"]" 'guards = [{ counter = "latency", tolerance = "100%" }]'
systemctl start wq-tuned
wait_until 400 ended 1 || fail "no verdict: $(trial_of "$wq" reason)"
check_eq "the verdict" improved "$(verdict verdict)"
note "$(verdict effect_percent)% in $(verdict pairs) pairs"
pairs_of_latency=$(jq '[.entries[].columns[] | select(.counter == "latency").pairs] | max' $ledger)
[ "$pairs_of_latency" -ge 16 ] || fail "latency has $pairs_of_latency pairs"
wait_until 30 state_is "$wq" kept || fail "state $(target "$wq" state)"
expect_scope "$wq" "$(target "$wq" planned)"
expect_no_probes
systemctl kill -s KILL wq-tuned
wait_until 60 is_active || fail "not started again"
wait_until 10 scope_is "$wq" "$(verdict candidate)" || fail "a verdict is not trusted after a crash"
check_eq "without another verdict" 1 "$(jq -s length $verdicts)"
check_eq "and is watched" watched "$(trial_of "$wq" course)"

note "-- what was learned, as a rule"
learned=/etc/wq-tuned/wq-tuned.toml.d/50-learned.toml
mkdir -p ${learned%/*}
printf '[[workqueue]]\nmatch = "%s"\nscope = "%s"\n' "$wq" "$(verdict candidate)" >$learned
check_eq "which decides" "$(verdict candidate) $learned" \
  "$(wq-tunectl explain "$wq" --json | jq -r '"\(.planned) \(.rule)"' | sed 's/:[0-9]*$//')"
wq-tunectl reload
wait_until 10 state_is "$wq" kept || fail "state $(target "$wq" state): $(target "$wq" reason)"
check_eq "without another verdict" 1 "$(jq -s length $verdicts)"

note "-- by hand, against the baseline of what is kept"
wq-tunectl compare "$wq" --with smt >/run/wq-tests/trial.out 2>&1 &
trial=$!
wait_until 30 state_is "$wq" comparing || fail "no trial"
check_eq "one order at a time" 1 "$(wq-tunectl compare "$wq" --with cpu 2>&1 | grep -c "an order compares it already")"
compared_with_smt() { [ "$(trial_of "$wq" candidate)" = smt ] && has_pairs "$wq" 1; }
wait_until 30 compared_with_smt || fail "no pair"
wq-tunectl revert "$wq"
if wait $trial; then fail "a trial that was cut off has exit code 0"; fi
tail -n 2 /run/wq-tests/trial.out
check_eq "and is told as such" 1 "$(tail -n 1 /run/wq-tests/trial.out | grep -c "cut off (reverted by an operator's order")"
expect_scope "$wq" default
systemctl stop wq-tuned
