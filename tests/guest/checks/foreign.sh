# SPDX-License-Identifier: LGPL-2.1-or-later
# wq-tuned never overwrites the value of an external writer; it stays exactly as it was written.
. lib.sh

crypt_c0
drop_in wq-tuned.service <<<$'[Service]\nWatchdogSec=0\nEnvironment=WATCHDOG_USEC=6000000' # a tick every three seconds
apply_policy "$(other_scope)"
start_to "$wq" "$(other_scope)"
echo numa >"$workqueues/$wq/affinity_scope"
check_eq "scope, at once" numa "$(target "$wq" scope)"
wait_until 20 state_is "$wq" external || fail "state: $(target "$wq" state)" # at the next tick
echo 0 >/sys/devices/system/cpu/cpu3/online
echo 1 >/sys/devices/system/cpu/cpu3/online
sleep 1.5
check_eq "after events" numa "$(scope_of "$wq")"
wq-tunectl pin "$wq" cpu 2>/run/wq-tests/err && fail "pin took what is not ours"
grep -q external /run/wq-tests/err || fail "pin says: $(cat /run/wq-tests/err)"
systemctl restart wq-tuned
check_eq "after a restart" numa "$(scope_of "$wq")"
check_eq "state after a restart" external "$(target "$wq" state)"
systemctl kill --kill-whom=main --signal=KILL wq-tuned
sleep 1
wait_until 10 is_active || fail "not started again"
systemctl stop wq-tuned
note "after kill -9 and stop it holds '$(scope_of "$wq")'"
check_eq "somebody else's word" numa "$(scope_of "$wq")"

note "-- an earlier word of ours: written while we run, then while we are stopped with settings kept"
echo default >"$workqueues/$wq/affinity_scope"
apply_policy "$(other_scope)"
then_cpu() { # holds cpu, after another scope that wq-tuned wrote
  systemctl start wq-tuned
  wq-tunectl pin "$wq" smt
  wq-tunectl pin "$wq" cpu
  check_eq "it holds" cpu "$(scope_of "$wq")"
  check_eq "the claim" '["cpu"]' "$(jq -c --arg n "$wq" '.entries[] | select(.target == $n) | .claim' /run/wq-tuned/owned.json)"
}
then_cpu
echo smt >"$workqueues/$wq/affinity_scope"
systemctl stop wq-tuned
check_eq "after stop" smt "$(scope_of "$wq")"
echo default >"$workqueues/$wq/affinity_scope"
sed -i '1i daemon.on_exit = "keep"' /etc/wq-tuned/wq-tuned.toml
then_cpu
systemctl stop wq-tuned
check_eq "kept" cpu "$(scope_of "$wq")"
echo smt >"$workqueues/$wq/affinity_scope"
systemctl start wq-tuned
check_eq "state after a start" external "$(target "$wq" state)"
check_eq "after a start" smt "$(scope_of "$wq")"
echo default >"$workqueues/$wq/affinity_scope"
apply_policy "$(other_scope)" # nothing is kept any more
wq-tunectl reload
systemctl stop wq-tuned
check_eq "and back" default "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope")"

note "-- a word of somebody else's where wq-tuned never wrote"
echo default >"$workqueues/$wq/affinity_scope"
apply_policy cache # it is planned, whether or not its pods are those of the default
echo cache >"$workqueues/$wq/affinity_scope"
systemctl start wq-tuned
check_eq "state" as-planned "$(target "$wq" state)"
echo cpu >"$workqueues/$wq/affinity_scope"
check_eq "scope, which status reads" cpu "$(target "$wq" scope)"
echo 0 >/sys/devices/system/cpu/cpu3/online # a tick looks at what is ours alone; an event at all
echo 1 >/sys/devices/system/cpu/cpu3/online
wait_until 20 state_is "$wq" external || fail "state: $(target "$wq" state)"
systemctl stop wq-tuned
check_eq "after stop" cpu "$(scope_of "$wq")"
echo default >"$workqueues/$wq/affinity_scope"

note "-- strictness: applied, restored, and left where somebody else writes it"
apply_policy "$(other_scope)"
echo 'strict = true' >>/etc/wq-tuned/wq-tuned.toml
strict() { cat "$workqueues/$wq/affinity_strict"; }
start_to "$wq" "$(other_scope)"
check_eq "strict" 1 "$(strict)"
systemctl stop wq-tuned
check_eq "restored" "default 0" "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope") $(strict)"
systemctl start wq-tuned
echo 0 >"$workqueues/$wq/affinity_strict"
wait_until 20 state_is "$wq" external || fail "state: $(target "$wq" state)"
wq-tunectl reload
check_eq "a reload looks anew" set "$(target "$wq" state)"
check_eq "strict" 1 "$(strict)"
systemctl stop wq-tuned
check_eq "restored" "default 0" "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope") $(strict)"
crypt_close c0
