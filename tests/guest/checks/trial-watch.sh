# SPDX-License-Identifier: LGPL-2.1-or-later
# After the verdict status tells what the scope is worth, by the pairs since then alone. The watch takes it back
# when a changed load makes it harmful. The scope is not set again afterwards.
# timeout: 1500
. lib.sh

other=$(other_scope)
crypt_c0
cost_of "$other" 096 # not beyond 10%: the watch would slow down
load_on c0
trap 'cost_of_nothing; load_off' EXIT

trial_policy "auto:$other" "counters = [\"file:$cost\"]" 'guards = []' 'recheck = "5s"'
systemctl start wq-tuned
wait_until 240 ended 1 || fail "no verdict: $(trial_of "$wq" reason)"
check_eq "the verdict" improved "$(verdict verdict)"
check_eq "not before 16 pairs" yes "$([ "$(verdict pairs)" -ge 16 ] && echo yes)"
wait_until 10 state_is "$wq" kept || fail "state $(target "$wq" state)"
note "kept after $(verdict pairs) pairs: $(verdict effect_percent)%"

note "-- what it is worth"
worth() { status | jq -r --arg key "$1" '.worth.classes[0][$key]'; }
check_eq "targets on another scope" 1 "$(status | jq .worth.moved)"
check_eq "its effect before there are 16 pairs" null "$(worth effect_percent)"
wq-tunectl status | grep -q 'not yet measured' || fail "status says: $(wq-tunectl status | head -n 4)"
all_pairs() { [ "$(worth pairs)" -ge 16 ] 2>/dev/null; }
wait_until 600 all_pairs || fail "$(worth pairs) pairs since the verdict: $(trial_of "$wq" reason)"
check_eq "those of the verdict are not among them" yes "$([ "$(worth pairs)" -le $(($(trial_of "$wq" pairs) - $(verdict pairs))) ] && echo yes)"
check_eq "its worth is some 8%" yes "$(worth effect_percent | jq -r 'if . < -4 and . > -13 then "yes" else . end')"
text=$(wq-tunectl status | head -n 6 | tr '\n' ' ')
[[ $text =~ 'on another scope than the kernel'.*' better '.*' pairs since ' ]] || fail "status says: $text"
note "$text"

note "-- the load changes"
echo 130 >$under
began=$SECONDS
wait_until 600 ended 2 || fail "the watch says nothing: $(trial_of "$wq" reason)"
check_eq "the verdict" regressed "$(verdict verdict)"
note "taken back after $((SECONDS - began)) s: $(verdict reason), $(verdict effect_percent)%"
expect_scope "$wq" default
check_eq "taken back this month" 1 "$(status | jq .worth.taken_back_this_month)"
check_eq "no target is on another scope" 0 "$(status | jq .worth.moved)"
! wait_until 20 in_place || fail "it is tried again"
check_eq "it rests" resting "$(trial_of "$wq" course)"
systemctl restart wq-tuned
! wait_until 15 in_place || fail "it is tried again after a restart"
systemctl stop wq-tuned
