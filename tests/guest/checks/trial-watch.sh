# SPDX-License-Identifier: LGPL-2.1-or-later
# The watch takes back a kept scope when a changed load makes it harmful. The scope is not set again
# afterwards.
# timeout: 900
. lib.sh

other=$(other_scope)
crypt_c0
# The counter is a file. While the candidate is in place, its value is that of the file `under`.
cost=/run/wq-tests/cost under=/run/wq-tests/under
mkfifo /run/wq-tests/never
follow_scope() {
  local word value
  while :; do
    read -r word _ <"$workqueues/$wq/affinity_scope"
    read -r value <$under
    if [ "$word" = "$other" ]; then echo "$value"; else echo "10$((RANDOM % 10))"; fi 1<>$cost
    read -rt 0.02 _ || true
  done <>/run/wq-tests/never
}
echo 100 >$cost
echo 080 >$under
follow_scope &
follower=$!
load_on c0
trap 'kill $follower 2>/dev/null || true; load_off; rm -f /run/wq-tests/never' EXIT

trial_policy "auto:$other" "counters = [\"file:$cost\"]" 'guards = []' 'recheck = "5s"'
systemctl start wq-tuned
wait_until 240 ended 1 || fail "no verdict: $(target "$wq" reason)"
check_eq "the verdict" improved "$(verdict verdict)"
check_eq "not before 16 pairs" yes "$([ "$(verdict pairs)" -ge 16 ] && echo yes)"
wait_until 10 state_is "$wq" kept || fail "state $(target "$wq" state)"
note "kept after $(verdict pairs) pairs: $(verdict effect_percent)%"

note "-- the load changes"
echo 130 >$under
began=$SECONDS
wait_until 600 ended 2 || fail "the watch says nothing: $(target "$wq" reason)"
check_eq "the verdict" regressed "$(verdict verdict)"
note "taken back after $((SECONDS - began)) s: $(verdict reason), $(verdict effect_percent)%"
expect_scope "$wq" default
in_place() { scope_is "$wq" "$other"; }
! wait_until 20 in_place || fail "it is tried again"
check_eq "it rests" resting "$(trial_of "$wq" course)"
systemctl restart wq-tuned
! wait_until 15 in_place || fail "it is tried again after a restart"
systemctl stop wq-tuned
