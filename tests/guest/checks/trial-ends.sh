# SPDX-License-Identifier: LGPL-2.1-or-later
# Everything that can interrupt a comparison: no setting is left behind, no pair is lost or counted twice, and
# the reason is reported.
# timeout: 900
. lib.sh

other=$(other_scope)
crypt_c0
load_c0
# A very small alpha, so that there is no verdict for many pairs.
long_trials() { trial_policy "auto:$other" 'alpha = 0.0000001' 'max_pairs = 2000'; }
# `goes_on N`: waits for N more pairs.
goes_on() {
  local now
  now=$(trial_of "$wq" pairs)
  wait_until 90 has_pairs "$wq" $((${now:-0} + $1)) || fail "no $1 more pairs: $(trial_of "$wq" reason)"
}
# `is_off WHAT`: the kernel's scope is restored, and the candidate is not set again.
is_off() {
  expect_scope "$wq" default
  ! wait_until 20 in_place || fail "$1: the candidate is in place"
  expect_no_probes
}
long_trials
systemctl start wq-tuned
wait_until 60 has_pairs "$wq" 2 || fail "no pair: $(trial_of "$wq" reason)"

note "-- the load stops, and comes back"
load_off
wait_until 30 state_is "$wq" waiting || fail "state $(target "$wq" state)"
is_off "without load"
check_eq "no baseline is left to keep" 0 "$(entries)"
pairs=$(trial_of "$wq" pairs)
load_on c0
goes_on 1
[ "$(trial_of "$wq" pairs)" -gt "$pairs" ] || fail "it began anew"

note "-- the daemon stops, and starts"
systemctl stop wq-tuned
expect_scope "$wq" default
pairs=$(ledger_pairs)
[ "$pairs" -ge 3 ] || fail "the ledger has $pairs pairs"
systemctl start wq-tuned
check_eq "it knows its pairs" yes "$([ "$(trial_of "$wq" pairs)" -ge "$pairs" ] && echo yes)"
goes_on 1

note "-- as after a reboot: nothing in /run, each scope as the kernel makes it"
systemctl stop wq-tuned
pairs=$(ledger_pairs)
rm -rf /run/wq-tuned
systemctl start wq-tuned
wait_until 60 has_pairs "$wq" $((pairs + 1)) || fail "it does not go on: $(trial_of "$wq" reason)"

note "-- paused, through a restart, and resumed"
wq-tunectl pause
wait_until 20 scope_is "$wq" default || fail "it goes on"
systemctl restart wq-tuned
is_off "paused"
check_eq "status says so" paused "$(daemon_field state)"
wq-tunectl resume
goes_on 1

note "-- a CPU goes, and comes back"
pairs=$(trial_of "$wq" pairs)
echo 0 >/sys/devices/system/cpu/cpu3/online
sleep 3
echo 1 >/sys/devices/system/cpu/cpu3/online
wait_until 60 has_pairs "$wq" $((pairs + 1)) || fail "it does not go on: $(trial_of "$wq" reason)"

note "-- switched off, under load"
touch /etc/wq-tuned/disabled
is_off "switched off"
rm /etc/wq-tuned/disabled
goes_on 1

note "-- an operator's order, under load"
wq-tunectl revert "$wq"
is_off "reverted"
check_eq "it stands" reverted "$(target "$wq" state)"
wq-tunectl unpin "$wq"
goes_on 1

note "-- kill -9 while the candidate is in place, at five moments"
for delay in 0 0.3 0.6 0.9 1.2; do
  wait_until 60 in_place || fail "the candidate never comes"
  sleep $delay
  systemctl kill -s STOP wq-tuned # no pair ends between the count and the kill
  pairs=$(known_pairs)
  systemctl kill -s KILL wq-tuned
  wait_until 20 scope_is "$wq" default || fail "after a kill: $(scope_of "$wq")"
  jq -e . $ledger >/dev/null || fail "the ledger is half-written"
  wait_until 60 is_active || fail "not started again"
  # The window that was cut off counts; no pair is forgotten.
  seen=$(trial_of "$wq" pairs)
  if [ "$seen" -lt "$pairs" ] || [ "$seen" -gt $((pairs + 1)) ]; then fail "$pairs pairs before the kill, $seen after it"; fi
  note "ok: killed after $delay s, $pairs pairs before it, $seen after it"
done

note "-- somebody else writes"
goes_on 1
echo numa >"$workqueues/$wq/affinity_scope"
wait_until 20 state_is "$wq" external || fail "state $(target "$wq" state)"
check_eq "the reason" "an external writer wrote" "$(target "$wq" reason | cut -c1-24)"
expect_scope "$wq" numa
echo default >"$workqueues/$wq/affinity_scope"
systemctl reload wq-tuned
goes_on 1

note "-- the workqueue vanishes"
load_off
crypt_close c0
gone() { ! has_target "$wq"; }
wait_until 20 gone || fail "it is still listed"
check_eq "nothing is left" 0 "$(entries)"
expect_no_probes
check_eq "no verdict" 0 "$(if [ -e $verdicts ]; then jq -s '[.[] | select(.judged)] | length' $verdicts; else echo 0; fi)"

note "-- a ledger that is no ledger"
systemctl stop wq-tuned
echo '{"version": 1, "entries": [' >$ledger
systemctl start wq-tuned
journalctl --sync
check_eq "is renamed" 1 "$(find /var/lib/wq-tuned -name 'ledger.json.broken' | wc -l)"
check_eq "with a warning" 1 "$(journalctl -u wq-tuned -p warning | grep -c '; renamed to ')"
systemctl stop wq-tuned
