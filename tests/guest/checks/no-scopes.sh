# SPDX-License-Identifier: LGPL-2.1-or-later
# A kernel before 6.6 has no affinity scopes: everything says so in one line, nothing fails, and the daemon stays up.
. lib.sh
line="Linux $(uname -r) has no affinity scopes: 6.6 or later is needed"
[ ! -e "$workqueues/writeback/affinity_scope" ] || fail "this kernel has affinity scopes"
policy <<'POLICY'
[[workqueue]]
match = "*"
scope = "auto"
POLICY

note "-- without the daemon"
check_eq "plan" "$line" "$(wq-tunectl plan 2>&1)"
check_eq "plan --json" '{"scopes":[],"targets":[]}' "$(wq-tunectl plan --json | jq -c '{scopes: .kernel.scopes, targets}')"
rc=0
COLUMNS=200 wq-tunectl status >/run/wq-tests/status.txt 2>&1 || rc=$?
cat /run/wq-tests/status.txt
check_eq "exit code of status" 3 $rc
check_eq "status says it once" 1 "$(grep -cF "$line" /run/wq-tests/status.txt)"
check_eq "and of no file" 0 "$(grep -c 'No such file' /run/wq-tests/status.txt || true)"
rc=0
wq-tunectl explain writeback >/run/wq-tests/explain.txt 2>&1 || rc=$?
check_eq "explain" "1 wq-tunectl: $line" "$rc $(cat /run/wq-tests/explain.txt)"
rc=0
wq-tunectl bench >/run/wq-tests/bench.txt 2>&1 || rc=$?
check_eq "bench" "1 wq-tunectl: $line" "$rc $(cat /run/wq-tests/bench.txt)"
wq-tunectl topology

note "-- with the daemon"
mark
systemctl start wq-tuned
is_active || fail "not running"
check_eq "state" "observing $line" "$(daemon_field state) $(daemon_field reason)"
systemctl show -P StatusText wq-tuned
case $(systemctl show -P StatusText wq-tuned) in "observing: $line"*) note "ok: STATUS" ;; *) fail "STATUS does not say it" ;; esac
COLUMNS=200 wq-tunectl status >/run/wq-tests/status.txt 2>&1 || fail "exit code of status: $?"
check_eq "status says it once" 1 "$(grep -cF "$line" /run/wq-tests/status.txt)"
check_eq "the journal does, too" 1 "$(since_mark | grep -cF "$line")"
check_eq "and of no file" 0 "$(since_mark | grep -c 'No such file' || true)"
check_eq "pin" 1 "$(wq-tunectl pin writeback smt 2>&1 | grep -cF "$line")"
echo 0 >/sys/devices/system/cpu/cpu5/online
echo 1 >/sys/devices/system/cpu/cpu5/online
wq-tunectl reload
sleep 1
is_active || fail "not running any more"
systemctl stop wq-tuned
check_eq "how it ended" "success 0" "$(systemctl show -P Result -P ExecMainStatus wq-tuned | paste -sd' ')"
