# SPDX-License-Identifier: LGPL-2.1-or-later
# If work cannot be counted: without a counter nothing is tried, other counters judge, and what a rule
# sets first is not watched.
# timeout: 300
. lib.sh

crypt_c0
load_c0

no_counter() { trial_of "$wq" reason | grep -q "no counter can be measured"; }
# `denied WHY LINE...`: runs the daemon with these lines in its unit.
denied() {
  local why=$1
  shift
  trial_policy auto
  printf '%s\n' "$@" >>/run/systemd/system/wq-tuned.service.d/check.conf
  systemctl daemon-reload
  systemctl start wq-tuned
  wait_until 20 no_counter || fail "$why: $(trial_of "$wq" reason)"
  note "$why: $(trial_of "$wq" reason)"
  check_eq "$why: nothing was written" 0 "$(daemon_field writes)"
  journalctl --sync
  check_eq "$why: said once" 1 "$(journalctl -u wq-tuned "_PID=$(systemctl show -P MainPID wq-tuned)" -o cat | grep -c 'work is not counted')"
  wq-tunectl compare "$wq" --with smt 2>/run/wq-tests/err && fail "a trial without counters"
  check_eq "$why: a trial by hand is refused in one line" 1 "$(grep -c 'no counter can be measured' /run/wq-tests/err)"
  systemctl stop wq-tuned
}

if grep -q '\[confidentiality\]' /sys/kernel/security/lockdown 2>/dev/null; then
  denied "kernel lockdown"
else
  denied "no capability" "CapabilityBoundingSet=" "CapabilityBoundingSet=~CAP_BPF CAP_PERFMON CAP_SYS_ADMIN"
  denied "no BTF" "InaccessiblePaths=/sys/kernel/btf"
  printf '[Service]\nCapabilityBoundingSet=\n' >/run/systemd/system/wq-tuned.service.d/check.conf
fi

note "-- a number in a file is left to judge by"
trial_policy auto "counters = [\"latency\", \"file:/run/wq-tests/p99\"]"
drop_in wq-tuned.service <<<$'[Service]\nCapabilityBoundingSet=\nWatchdogSec=0\nEnvironment=WATCHDOG_USEC=6000000'
echo 10 >/run/wq-tests/p99
systemctl start wq-tuned
# The value of the file is worse while the candidate is in place. The loop starts no processes, because an
# emulator under load may need a whole window to start one.
mkfifo /run/wq-tests/never
follow_scope() {
  local word
  while :; do
    read -r word _ <"$workqueues/$wq/affinity_scope"
    if [ "$word" = default ]; then echo 10; else echo 20; fi 1<>/run/wq-tests/p99
    read -rt 0.02 _ || true
  done <>/run/wq-tests/never
}
follow_scope &
follower=$!
trap 'kill $follower 2>/dev/null || true; load_off' EXIT
wait_until 240 ended 1 || fail "no verdict: $(trial_of "$wq" reason)"
kill $follower
rm /run/wq-tests/never
check_eq "the verdict" "regressed by file:/run/wq-tests/p99" "$(verdict verdict) by $(verdict counter)"
expect_scope "$wq" default
systemctl stop wq-tuned
rm $verdicts $ledger

note "-- a rule sets it first, unwatched"
trial_policy plan
drop_in wq-tuned.service <<<$'[Service]\nCapabilityBoundingSet='
systemctl start wq-tuned
wait_until 10 state_is "$wq" set || fail "state $(target "$wq" state)"
is_said() { grep -q "waits: no counter can be measured" <<<"$(wq-tunectl status "$wq")"; }
wait_until 60 is_said || fail "$(wq-tunectl status "$wq")"
systemctl stop wq-tuned
expect_scope "$wq" default
