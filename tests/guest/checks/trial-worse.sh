# SPDX-License-Identifier: LGPL-2.1-or-later
# A bad scope is taken back, and the verdict is where an operator looks for it.
# timeout: 600
. lib.sh

crypt_c0
load_c0

note "-- worse: the kernel had system, and a rule names cache: it is set first, and taken back"
echo system >"$workqueues/$wq/affinity_scope"
trial_policy cache
mark
start_to "$wq" cache
wait_until 180 state_is "$wq" comparing || fail "no comparison: $(trial_of "$wq" reason)"
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
sleep 12 # four ticks
check_eq "state" set "$(target "$wq" state)"
expect_scope "$wq" cache
systemctl stop wq-tuned
check_eq "no pair" "$pairs" "$(ledger_pairs)"
check_eq "nor after this stop" system "$(scope_of "$wq")"
echo default >"$workqueues/$wq/affinity_scope"
