# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What can come between a trial and its verdict: nothing is left behind, and the reason is told.
# timeout: 900
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh

other=$(other_scope)
in_phase() { [ "$(trial_of "$wq" phase)" = "$1" ] && scope_is "$wq" "$other"; } # with the candidate in place
crypt_open c0
wq=$(wq_of c0)
load_on c0
trap load_off EXIT
# No verdict before its time: so much evidence takes many pairs.
long_trials() { trial_policy "$other" 'alpha = 0.0000001' 'max_pairs = 200'; }
long_trials
systemctl start wq-tuned
wait_until 60 pair_is "$wq" 2 || fail "no trial: $(target "$wq" reason)"

note "-- the load stops, and comes back"
load_off
wait_until 20 state_is "$wq" waiting || fail "state $(target "$wq" state)"
expect_scope "$wq" default
check_eq "it waits" "waiting" "$(trial_of "$wq" phase)"
pair=$(trial_of "$wq" pair)
check_eq "no baseline is left to keep" 0 "$(entries)"
expect_no_probes
load_on c0
wait_until 60 pair_is "$wq" $((pair + 1)) || fail "it does not go on: $(target "$wq" reason)"
check_eq "it is the same trial" 1 "$(jq '[.begun[].trials] | add' $verdicts)"

note "-- a CPU goes"
echo 0 >/sys/devices/system/cpu/cpu3/online
wait_until 20 ended 1 || fail "no end"
check_eq "the reason" "CPUs came or went" "$(verdict reason)"
echo 1 >/sys/devices/system/cpu/cpu3/online

# After a start the first trial that is cut off has the next one wait for ten seconds only.
fresh_trial() {
  systemctl restart wq-tuned
  wait_until 60 pair_is "$wq" 1 || fail "no trial: $(target "$wq" reason)"
  before=$(jq '.verdicts | length' $verdicts)
}
# `stays_away REASON`: the trial ends for that, and no other begins.
stays_away() {
  wait_until 20 ended $((before + 1)) || fail "no end"
  check_eq "the reason" "$1" "$(verdict reason | cut -c1-${#1})"
  begun=$(jq '[.begun[].trials] | add' $verdicts)
  ! wait_until 30 scope_is "$wq" "$other" || fail "the candidate is in place"
  check_eq "no other began" "$begun" "$(jq '[.begun[].trials] | add' $verdicts)"
  expect_no_probes
}
note "-- switched off, under load"
fresh_trial
touch /etc/wq-tuned/disabled
stays_away "nothing is written any more"
rm /etc/wq-tuned/disabled

note "-- switched off just after a tick: the next window notices"
tick=20 long_trials
fresh_trial
touch /etc/wq-tuned/disabled
wait_until 10 ended $((before + 1)) || fail "it goes on"
check_eq "the reason" "nothing is written any more" "$(verdict reason | cut -c1-27)"
rm /etc/wq-tuned/disabled
long_trials

note "-- a CPU goes, and is back before the daemon looks: that pair is dropped, the trial goes on"
# Windows so long that a daemon that was stopped meanwhile has not slept through one.
window=10s long_trials
fresh_trial
dropped=$(trial_of "$wq" dropped)
systemctl kill -s STOP wq-tuned
echo 0 >/sys/devices/system/cpu/cpu3/online
echo 1 >/sys/devices/system/cpu/cpu3/online
udevadm settle
systemctl kill -s CONT wq-tuned
wait_until 90 pair_is "$wq" 2 || fail "no second pair: $(target "$wq" reason)"
check_eq "pairs dropped" $((dropped + 1)) "$(trial_of "$wq" dropped)"
check_eq "no trial ended" "$before" "$(jq '.verdicts | length' $verdicts)"
long_trials

note "-- an operator's order, under load"
fresh_trial
wq-tunectl revert "$wq"
stays_away "an operator's order"
check_eq "it stands" reverted "$(target "$wq" state)"
wq-tunectl unpin "$wq"

note "-- kill -9 in each phase"
# Each as long as a look at the status may take here.
window=3s washout=2s long_trials
systemctl reload wq-tuned
for phase in washout counting draining; do
  wait_until 60 state_is "$wq" trial || fail "no trial: $(target "$wq" reason)"
  wait_until 90 in_phase $phase || fail "never $phase with the candidate in place"
  systemctl kill -s KILL wq-tuned
  wait_until 20 scope_is "$wq" default || fail "after a kill in $phase: $(scope_of "$wq")"
  jq -e . $verdicts >/dev/null || fail "the store is half-written"
  note "ok: killed while $phase"
  wait_until 60 is_active || fail "not started again"
done
systemctl stop wq-tuned
expect_no_probes
long_trials
systemctl start wq-tuned

note "-- somebody else writes"
wait_until 60 pair_is "$wq" 1 || fail "no trial"
echo numa >"$workqueues/$wq/affinity_scope"
wait_until 20 state_is "$wq" external || fail "state $(target "$wq" state)"
check_eq "the reason" "an external writer wrote" "$(verdict reason | cut -c1-24)"
expect_scope "$wq" numa
echo default >"$workqueues/$wq/affinity_scope"
systemctl reload wq-tuned

note "-- the workqueue vanishes"
wait_until 60 pair_is "$wq" 1 || fail "no trial: $(target "$wq" reason)"
before=$(jq '.verdicts | length' $verdicts)
load_off
crypt_close c0
wait_until 20 ended $((before + 1)) || fail "no end"
check_eq "the reason" "the workqueue vanished" "$(verdict reason)"
check_eq "nothing is left" 0 "$(entries)"
expect_no_probes
check_eq "of trials that were cut off, no verdict" 0 "$(jq '[.verdicts[] | select(.judged)] | length' $verdicts)"

note "-- a store that is no store"
systemctl stop wq-tuned
echo '{"version": 1, "verdicts": [' >$verdicts
systemctl start wq-tuned
journalctl --sync
check_eq "is set aside" 1 "$(find /var/lib/wq-tuned -name 'verdicts.json.broken' | wc -l)"
check_eq "with a warning" 1 "$(journalctl -u wq-tuned -p warning | grep -c 'set aside')"
systemctl stop wq-tuned
