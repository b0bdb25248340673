# SPDX-License-Identifier: LGPL-2.1-or-later
# `wq-tunectl ab` on dm-crypt: it prints figures for each scope, and restores the baseline in whatever way it
# ends.
. lib.sh

crypt_c0
other=$(other_scope)
parameter=/sys/module/workqueue/parameters/default_affinity_scope
default=$(cat $parameter)
arms=$default,$other
load=(dd if=/dev/zero of=/dev/mapper/c0 bs=32k count=100 oflag=direct status=none)
loads() { pgrep -xcf 'sleep 1234' || true; }
no_loads() { [ "$(loads)" = 0 ]; }
all_back() { scope_is "$wq" default && [ "$(left_files)" = 0 ] && no_guardians; }
service() { systemctl show --value -p "$1" wq-tuned; }
daemon_failed() { [ "$(service ActiveState)" = failed ]; }
refused() { # WORDS ARGUMENTS...
  local words=$1 code=0
  shift
  wq-tunectl ab "$@" -- touch /run/wq-tests/ran 2>/run/wq-tests/err || code=$?
  check_eq "refused: $words" "1 1" "$code $(grep -c "^wq-tunectl: .*$words" /run/wq-tests/err)"
  [ ! -e /run/wq-tests/ran ] || fail "the command ran"
}

note "-- figures"
wq-tunectl ab --target "$wq" --arms "$arms" --pairs 3 -- "${load[@]}" || fail "exit code $?"
all_back || fail "left: $(scope_of "$wq"), $(left_files) entries"
wq-tunectl ab --target "$wq" --arms "$arms" --pairs 2 --json --higher-is-better --metric '(?s)"write" :.*?"bw_bytes" : (\d+)' -- \
  fio --name=ab --filename=/dev/mapper/c0 --rw=randwrite --bs=32k --iodepth=16 --ioengine=libaio --direct=1 --number_ios=200 \
  --output-format=json >/run/wq-tests/ab.json || fail "exit code $?"
jq -c '.arms[] | {arm, pools, kworkers, values, verdict}' /run/wq-tests/ab.json
check_eq "two values of each arm, pools and kworkers" true \
  "$(jq '(.arms | length == 2) and ([.arms[] | (.values | length == 2) and .pools >= 1 and .kworkers >= .pools] | all)' /run/wq-tests/ab.json)"
wq-tunectl ab --target @default --arms "$arms" --pairs 2 -- "${load[@]}" || fail "exit code $?"
check_eq "the parameter" "$default" "$(cat $parameter)"
check_eq "what follows it" "default ($default)" "$(scope_of "$wq")"

note "-- refused"
refused "per-CPU workqueues" --target "$(basename "$(echo "$workqueues"/kcryptd_io-*)")" --arms "$arms"
[ -e /sys/module/workqueue/parameters/cache_shard_size ] ||
  refused "no cache_shard" --target "$wq" --arms "cache_shard,$other"
code=0
setpriv --reuid 65534 --clear-groups wq-tunectl ab --target "$wq" --arms "$arms" -- true 2>/run/wq-tests/err || code=$?
check_eq "not root" "1 wq-tunectl: ab changes settings of the kernel: only root can" "$code $(cat /run/wq-tests/err)"
systemctl start wq-tuned
refused "systemctl stop wq-tuned first" --target "$wq" --arms "$arms"
systemctl stop wq-tuned

note "-- ends"
code=0
wq-tunectl ab --target "$wq" --arms "$arms" -- sh -c 'exit 3' 2>/run/wq-tests/err || code=$?
check_eq "a failing command" "1 1" "$code $(grep -c 'run 1 (.*): sh: exit code 3' /run/wq-tests/err)"
all_back || fail "left: $(scope_of "$wq"), $(left_files) entries"

set -m # each in its own process group, as on a terminal, where SIGINT is not ignored
hanging() { # starts an `ab` whose command hangs in its second run
  rm -f /run/wq-tests/{once,ran}
  wq-tunectl ab --target "$wq" --arms "$other,$default" -- \
    sh -c 'if [ -e /run/wq-tests/once ]; then touch /run/wq-tests/ran; sleep 1234 & wait; fi; touch /run/wq-tests/once' 2>/run/wq-tests/err &
  ab=$!
  wait_until 20 test -e /run/wq-tests/ran || fail "no second run: $(cat /run/wq-tests/err)"
  check_eq "an entry while it runs" 1 "$(left_files)"
  ! scope_is "$wq" default || fail "it does not hold an arm"
}
for signal in INT TERM HUP KILL; do
  hanging
  kill -s $signal -- -$ab
  code=0
  wait $ab 2>/dev/null || code=$?
  wait_until 10 all_back || fail "SIG$signal left: $(scope_of "$wq"), $(left_files) entries, $(guardians) guardians"
  wait_until 10 no_loads || fail "SIG$signal left the command's child"
  case $signal in
    KILL) check_eq "SIG$signal to the group: exit code" 137 $code ;;
    *) check_eq "SIG$signal to the group" "1 1" "$code $(grep -c "^wq-tunectl: interrupted by SIG$signal" /run/wq-tests/err)" ;;
  esac
done

note "-- nobody pulls the scope away meanwhile"
hanging
held=$(scope_of "$wq")
/usr/libexec/wq-tuned-restore
systemctl start wq-tuned-restore
! systemctl start wq-tuned 2>/dev/null || fail "a daemon runs beside it"
wait_until 10 daemon_failed || fail "it is tried again: $(service ActiveState)"
wait_until 10 no_jobs || fail "the restore of its failure does not end: $(systemctl list-jobs --no-legend)"
check_eq "a start beside it fails, and is not tried again" "75 0" "$(service ExecMainStatus) $(service NRestarts)"
systemctl reset-failed wq-tuned wq-tuned-restore 2>/dev/null || true
check_eq "it holds what it held" "$held" "$(scope_of "$wq")"

note "-- the guardian is killed too"
kill -KILL "$(pgrep -x wq-ab-guardian)" $ab
wait $ab 2>/dev/null || true
pkill -xf 'sleep 1234' || true # a child of the command; no guardian was left to kill it
wait_until 10 no_guardians || fail "the guardian lives"
check_eq "the entry is on disk" 1 "$(left_files)"
! systemctl start wq-tuned 2>/dev/null || fail "a daemon takes it for the kernel's"
wait_until 10 daemon_failed || fail "it is tried again: $(service ActiveState)"
wait_until 10 no_jobs || fail "the restore of its failure does not end: $(systemctl list-jobs --no-legend)"
check_eq "the daemon does not start" "75 1" "$(service ExecMainStatus) $(left_files)"
systemctl reset-failed wq-tuned wq-tuned-restore 2>/dev/null || true
wq-tunectl ab --restore || fail "exit code $?"
all_back || fail "left: $(scope_of "$wq"), $(left_files) entries"

note "-- its whole cgroup is killed: a logout, the OOM killer"
rm -f /run/wq-tests/{once,ran}
systemd-run --quiet --collect --unit=ab-victim -- wq-tunectl ab --target "$wq" --arms "$other,$default" -- \
  sh -c 'if [ -e /run/wq-tests/once ]; then touch /run/wq-tests/ran; sleep 1234; fi; touch /run/wq-tests/once'
wait_until 20 test -e /run/wq-tests/ran || fail "no second run: $(journalctl -u ab-victim --no-pager)"
check_eq "the guardian's own scope" 1 "$(systemctl list-units --no-legend --plain 'wq-tunectl-ab-*.scope' | wc -l)"
! scope_is "$wq" default || fail "it does not hold an arm"
systemctl kill --kill-whom=all --signal=KILL ab-victim
wait_until 10 all_back || fail "left: $(scope_of "$wq"), $(left_files) entries, $(guardians) guardians"
wait_until 10 no_loads || fail "the command's child is left"
no_scopes() { [ -z "$(systemctl list-units --all --no-legend --plain 'wq-tunectl-ab-*.scope')" ]; }
wait_until 10 no_scopes || fail "a scope is left: $(systemctl list-units --all --no-legend 'wq-tunectl-ab-*.scope')"
