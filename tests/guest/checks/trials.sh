# SPDX-License-Identifier: LGPL-2.1-or-later
# A bad scope is taken back, a good one is kept, and the verdicts are where an operator looks for them.
# timeout: 800
. lib.sh

crypt_c0
load_c0

note "-- worse: the kernel had system, and a rule names cache: it is set first, and taken back"
echo system >"$workqueues/$wq/affinity_scope"
trial_policy cache
mark
start_to "$wq" cache
wait_until 180 state_is "$wq" comparing || fail "no comparison: $(target "$wq" reason)"
note "$(wq-tunectl status | grep kcryptd)"
wait_until 400 ended 1 || fail "no verdict"
check_eq "the verdict" regressed "$(verdict verdict)"
note "latency $(verdict effect_percent)% in $(verdict pairs) pairs"
expect_scope "$wq" system
check_eq "bit for bit" system "$(scope_of "$wq")"
check_eq "status says so" reverted "$(target "$wq" state)"
check_eq "and with what verdict" regressed "$(status | jq -r --arg wq "$wq" '.targets[] | select(.name == $wq) | .verdict.verdict')"
journalctl --sync
backs=$(journalctl -u wq-tuned -p info -o cat --since="$marked" | grep -c 'back to' || true)
[ "$backs" -le 1 ] || fail "it is news $backs times that it goes back: after each slot it is none"
check_eq "one event in the journal" 1 "$(journalctl -u wq-tuned -o json --since="$marked" | jq -r 'select(.WQ_VERDICT) | .WQ_VERDICT' | grep -c regressed)"
check_eq "no baseline is left to keep" 0 "$(entries)"
expect_no_probes
wq-tunectl history | grep -q "regressed" || fail "history does not say so: $(wq-tunectl history)"
wq-tunectl report -o /run/wq-tests/report.html
# A guard that decides may have fewer pairs than latency, which is drawn then. A lost window has no values.
# shellcheck disable=SC2016 # these dollars are jq's
drawn='.[-1] as $v | ([$v.differences[] | select(.counter == $v.counter)] + $v.differences)[0].last | length'
check_eq "the report draws every pair" "$(jq -s "$drawn" $verdicts)" \
  "$(grep -o 'class="dots"[^>]*' /run/wq-tests/report.html | grep -o h0 | wc -l)"
check_eq "and has what the daemon says" 1 "$(grep -c '<p>wq-tuned .*: running, mode tune' /run/wq-tests/report.html)"
systemctl stop wq-tuned
check_eq "nor after the stop" system "$(scope_of "$wq")"

note "-- with hold = true it stays whatever the evidence says, and nothing is compared"
rule='hold = true' trial_policy cache
start_to "$wq" cache
pairs=$(ledger_pairs)
sleep 20
check_eq "state" set "$(target "$wq" state)"
expect_scope "$wq" cache
systemctl stop wq-tuned
check_eq "no pair" "$pairs" "$(ledger_pairs)"
check_eq "nor after this stop" system "$(scope_of "$wq")"
echo default >"$workqueues/$wq/affinity_scope"

note "-- better: the kernel had cache, auto plans wider"
rm $verdicts $ledger
trial_policy auto
systemctl start wq-tuned
wait_until 400 ended 1 || fail "no verdict: $(target "$wq" reason)"
check_eq "the verdict" improved "$(verdict verdict)"
note "latency $(verdict effect_percent)% in $(verdict pairs) pairs"
wait_until 5 state_is "$wq" kept || fail "state $(target "$wq" state)"
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
check_eq "and is told as such" 1 "$(tail -n 1 /run/wq-tests/trial.out | grep -c "cut off (an operator's order)")"
expect_scope "$wq" default
systemctl stop wq-tuned
