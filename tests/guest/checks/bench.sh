# SPDX-License-Identifier: LGPL-2.1-or-later
# `wq-tunectl bench` on eight one-CPU sockets: it finds `system`, and leaves no device, setting or entry, at
# whatever point it is killed.
# timeout: 720
. lib.sh

here=$(mktemp -d)
left=/run/wq-tuned/lab.json
rams=/sys/kernel/config/nullb
devices() { dmsetup ls 2>/dev/null | grep wq-bench- || true; ls -d $rams/wq-bench-* 2>/dev/null || true; }
nothing_left() {
  [ ! -e $left ] && [ -z "$(devices)" ] && [ "$(guardians)" = 0 ] && [ ! -e /sys/module/null_blk ] &&
    ! compgen -G "$workqueues/kcryptd-*" >/dev/null
}
expect_nothing() { # WHEN
  wait_until 20 nothing_left || fail "$1: left: $(devices) $(cat $left 2>/dev/null), $(guardians) guardians, $(lsmod | grep null_blk)"
}
refused() { # WORDS ARGUMENTS...
  local words=$1 code=0
  shift
  wq-tunectl bench "$@" >"$here/out" 2>"$here/err" || code=$?
  check_eq "refused: $words" "1 1 0" "$code $(grep -c "^wq-tunectl: .*$words" "$here/err") $(wc -l <"$here/out")"
}
[ ! -e /sys/module/null_blk ] || fail "null_blk is loaded before"

note "-- the result"
began=${EPOCHREALTIME/./}
wq-tunectl bench --seconds 0.5 --rounds 14 --json >"$here/a.json" || fail "exit code $?"
note "$(((${EPOCHREALTIME/./} - began) / 1000000)) s"
expect_nothing "at its end"
COLUMNS=80 wq-tunectl bench --seconds 0.2 --rounds 1 | tee "$here/out" || fail "exit code $?"
jq -c '.scopes[] | {load, scope, pools, same_pods_as, median, verdict, effect_percent, e_improved}' "$here/a.json"
check_eq "nothing is unseen" "" "$(jq -r .missing "$here/a.json")"
check_eq "all figures" true "$(jq '[.scopes[].runs[] | .items_per_s > 0 and .mb_per_s > 0 and .io_p50_ns <= .io_p99_ns and .kworkers > 0] | all' "$here/a.json")"
check_eq "time in queue_work()" true "$(jq '[.scopes[].runs[] | 0 < .enqueue_p50_ns and .enqueue_p50_ns <= .enqueue_p90_ns and .enqueue_p90_ns <= .enqueue_p95_ns and .enqueue_p95_ns <= .enqueue_p99_ns] | all' "$here/a.json")"
check_eq "a work item is a write, or a read" true "$(jq '[.scopes[].median | (.items_per_s * 32768 / 1e6 / .mb_per_s) | . > 0.8 and . < 1.25] | all' "$here/a.json")"
scopes=$(wc -w <<<"$(jq -r '.scopes[] | select(.load == "write").scope' "$here/a.json")")
check_eq "each scope with each load" $((2 * scopes)) "$(jq '[.scopes[] | .load + " " + .scope] | unique | length' "$here/a.json")"
check_eq "eight pools or one" true "$(jq '[.scopes[] | .pools == (if .scope == "numa" or .scope == "system" then 1 else 8 end)] | all' "$here/a.json")"
check_eq "as many as the kernel has" true "$(jq '[.scopes[] | .median.pools == .pools] | all' "$here/a.json")"
check_eq "one scope of other pods, the rest are controls" system "$(jq -r '.scopes[] | select(.load == "write" and .role == "candidate" and .same_pods_as == null).scope' "$here/a.json")"
# Whether `system` improves depends on this machine.
check_eq "the best is what improved" "$(jq -r '[.scopes[] | select(.load == "write" and .verdict == "improved" and .same_pods_as == null).scope][0]' "$here/a.json")" \
  "$(jq -r .best.write "$here/a.json")"
check_eq "a table for each load" "READ WRITE" "$(awk '$2 == "ITEMS/S" { print $1 }' "$here/out" | sort | paste -sd ' ')"
check_eq "lines beyond 80 columns" 0 "$(grep -c '.\{81\}' "$here/out")"

note "-- what is there stays"
modprobe null_blk nr_devices=1
was=$(stat -c %Z /dev/nullb0)
wq-tunectl bench --seconds 0.2 --rounds 1 --load write >/dev/null || fail "exit code $?"
check_eq "somebody else's null_blk" "$was" "$(stat -c %Z /dev/nullb0)"
rmmod null_blk
expect_nothing "beside another null_blk"

note "-- refused"
code=0
setpriv --reuid 65534 --clear-groups wq-tunectl bench 2>"$here/err" || code=$?
check_eq "not root" "1 wq-tunectl: bench makes devices: only root can" "$code $(cat "$here/err")"
systemctl start wq-tuned
refused "systemctl stop wq-tuned first"
systemctl stop wq-tuned
modules=/lib/modules/$(uname -r)
hidden=$(find "$modules/" -name 'null_blk.ko*')
mv "$hidden" "$here/"
refused "null_blk, the device below: modprobe .*: exit code 1"
mv "$here/$(basename "$hidden")" "$hidden"
mkdir "$here/bin"
for tool in modprobe grep; do ln -s "$(command -v $tool)" "$here/bin/"; done
code=0
PATH=$here/bin "$(command -v wq-tunectl)" bench 2>"$here/err" || code=$?
check_eq "without fio" "1 wq-tunectl: fio, which makes the load, is not installed: apt install fio" "$code $(cat "$here/err")"
expect_nothing "refused"

set -m # each in its own process group
start() { wq-tunectl bench --seconds 0.3 --rounds 1000 >/dev/null 2>"$here/err" & bench=$!; }
note "-- killed at twenty points"
for seconds in 0.05 0.15 0.3 0.5 0.8 1.1 1.5 2 2.7 3.5; do
  for signal in KILL TERM; do
    start
    sleep "$seconds"
    kill -s $signal -- -$bench || fail "it ended by itself: $(cat "$here/err")"
    code=0
    wait $bench 2>/dev/null || code=$?
    expect_nothing "SIG$signal after $seconds s"
    # Before it installs its signal handlers, SIGTERM just kills it. Its group has fio, which it may be asking for its version.
    case $signal:$code in
      KILL:137 | TERM:143) ;;
      TERM:1) grep -qE "^wq-tunectl: (interrupted|fio( --version)?: killed) by SIGTERM" "$here/err" || fail "its last words: $(cat "$here/err")" ;;
      *) fail "SIG$signal after $seconds s: exit code $code: $(cat "$here/err")" ;;
    esac
  done
done
note "ok: nothing is left"

note "-- the guardian is killed too"
has_devices() { [ -n "$(devices)" ] && compgen -G "$workqueues/kcryptd-*" >/dev/null; }
has_entry() { has_devices && [ "$(left_files)" = 1 ]; }
both_killed() {
  start
  wait_until 20 has_entry || fail "no device or no entry: $(devices) $(cat $left) $(cat "$here/err")"
  kill -KILL "$(pgrep -x wq-ab-guardian)" $bench
  wait $bench 2>/dev/null || true
  [ -e $left ] || fail "nothing is on disk"
  check_eq "only root reads it" 600 "$(stat -c %a $left)"
  has_entry || fail "no device or no entry is left: $(devices) $(cat $left)"
}
both_killed
wq-tunectl bench --restore || fail "exit code $?"
expect_nothing "bench --restore"
both_killed
wq-tunectl bench --seconds 0.2 --rounds 1 --load write >/dev/null || fail "exit code $?"
expect_nothing "the next bench"

note "-- its whole cgroup is killed"
systemd-run --quiet --collect --unit=bench-victim -- wq-tunectl bench --seconds 0.3 --rounds 1000
wait_until 20 has_entry || fail "no device or no entry: $(devices) $(cat $left) $(journalctl -u bench-victim --no-pager)"
own_scope() { systemctl is-active --quiet "wq-tunectl-bench-$(pgrep -x wq-ab-guardian).scope"; }
wait_until 20 own_scope || fail "the guardian has no scope of its own: $(systemctl list-units --plain 'wq-tunectl-bench-*.scope')"
# The kernel's own: systemctl kill fails with EIO where a process of the cgroup is dying (PID 0 in cgroup.procs).
echo 1 >"/sys/fs/cgroup$(systemctl show --value -p ControlGroup bench-victim)/cgroup.kill"
expect_nothing "its cgroup was killed"
rm -r "$here"
