# SPDX-License-Identifier: LGPL-2.1-or-later
# A crypt device that is opened later gets its scope within a second of its uevent. When it is closed, no
# entry is left. If the same name is opened again, it is another workqueue with its own entry. A stop restores
# the baseline.
. lib.sh

scope=$(other_scope)
apply_policy "$scope"
systemctl start wq-tuned
check_eq "state before" running "$(daemon_field state)"
check_eq "writes before" 0 "$(daemon_field writes)"

udevadm monitor --udev --subsystem-match=workqueue >/run/wq-tests/uevents &
sleep 0.5
crypt_c0
expect_scope "$wq" "$scope"
wait_until 5 grep -q "add .*kcryptd-" /run/wq-tests/uevents || fail "no uevent was seen"
kill %1

# Both clocks are CLOCK_MONOTONIC; the journal's is in microseconds.
uevent=$(sed -nE 's/^UDEV +\[([0-9.]+)\] add .*kcryptd-[0-9].*/\1/p' /run/wq-tests/uevents | head -1)
journalctl --sync
applied=$(journalctl -u wq-tuned -o json WQ_NAME="$wq" | jq -r 'select(.WQ_SCOPE_NEW) | .__MONOTONIC_TIMESTAMP' | head -1)
[[ $uevent && $applied ]] || fail "not to be measured: uevent at '$uevent', applied at '$applied'"
delay=$(awk -v u="$uevent" -v a="$applied" 'BEGIN {printf "%.3f", a / 1e6 - u}')
note "uevent to applied: $delay s"
awk -v d="$delay" 'BEGIN {exit !(d < 1)}' || fail "more than a second from the uevent to the setting"

state_is "$wq" set || fail "state is $(target "$wq" state)"
check_eq "its baseline" default "$(target "$wq" baseline)"
first=$(jq -r --arg n "$wq" '.entries[] | select(.target == $n) | .inode' /run/wq-tuned/owned.json)
check_eq "entry of the baseline file" "default" "$(jq -r --arg n "$wq" '.entries[] | select(.target == $n) | .baseline' /run/wq-tuned/owned.json)"

crypt_close c0
gone() { ! has_target "$1" && [ "$(entries)" = 0 ]; }
wait_until 5 gone "$wq" || fail "$wq left a trace: $(status) $(cat /run/wq-tuned/owned.json)"

crypt_open c0
again=$(wq_of c0)
expect_scope "$again" "$scope"
second=$(jq -r --arg n "$again" '.entries[] | select(.target == $n) | .inode' /run/wq-tuned/owned.json)
[[ $first && $second ]] || fail "no inode in an entry"
[ "$first" != "$second" ] || fail "the entry of the first device was taken for the second ($again, inode $first)"

# Closed and opened again within one burst of events: the new workqueue still gets its own entry.
crypt_close c0
crypt_open c0
again=$(wq_of c0)
expect_scope "$again" "$scope"
wait_until 5 state_is "$again" set || fail "state is $(target "$again" state)"
check_eq "baseline of the one opened at once" default "$(target "$again" baseline)"

systemctl stop wq-tuned
scope_is "$again" default || fail "after stop it holds $(scope_of "$again")"
check_eq "entries after stop" 0 "$(entries)"
