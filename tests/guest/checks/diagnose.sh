# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 400
# shellcheck disable=SC2016 # these dollars are jq's
# `wq-tunectl diagnose` names a known hog first, shows per-CPU work as such, and names who disturbs isolated
# CPUs, with the right counts. Nothing of it stays in the kernel, in whatever way it ends. Without BPF it
# says so.
. lib.sh
count_work=/usr/lib/wq-tests/count-work
dir=/run/wq-tests/diagnose
mkdir -p $dir
# From 7.0 on a tracepoint can be preempted (for long in an emulator), and the counters then miss some items.
case $guest_kernel in 6.*) missed=0.005 ;; *) missed=0.02 ;; esac
load=""
put_back() {
  load_off
  udevadm control --start-exec-queue
  rmdir $cgroup 2>/dev/null || true
}
trap put_back EXIT

holds() { # WHAT EXPRESSION: fails unless it is true for $dir/json
  [ "$(jq "$2" $dir/json)" = true ] || { jq -c . $dir/json; fail "$1: not so: $2"; }
  note "ok: $1"
}
nothing_left() { wait_until 20 no_probes || fail "$1: programs left in the kernel: $("$count_work" --loaded)"; }
fits() { # FILE
  local wide
  wide=$(grep -v 'wq-tunectl ab' "$1" | grep -c '.\{81\}' || true)
  check_eq "lines wider than 80" 0 "$wide"
}

note "-- an idle machine"
wq-tunectl diagnose --seconds 2 | tee $dir/idle
fits $dir/idle
grep -q 'kworkers used [0-9.]* of 8 CPUs in' $dir/idle || fail "no summary"
nothing_left "after it"

note "-- a known hog"
key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
crypt_open c0
# With same_cpu_crypt the device's kcryptd is a per-CPU workqueue.
dmsetup create c1 --table "0 131072 crypt aes-xts-plain64 $key$(rev <<<"$key") 0 /dev/ram1 0 1 same_cpu_crypt"
unbound=$(wq_of c0) percpu=$(wq_of c1)
udevadm settle
udevadm control --stop-exec-queue # udev would read the device after a write
load_on c0
sleep 2
wq-tunectl diagnose --json >$dir/json 2>$dir/err
check_eq "complaints" "" "$(cat $dir/err)"
jq -c '.work[] | select(.cpu >= 0.01) | [.cpu, .function, .workqueue, .kind]' $dir/json
jq -c '.workqueues[0]' $dir/json
holds "it comes first" '.work[0] | .function == "kcryptd_crypt [dm_crypt]" and .workqueue == "'"$unbound"'" and .kind == "unbound"'
case $guest_kernel in
  6.*) holds "nothing is missing" '.missing == [] and .attributed == "ticks"' ;;
  *) holds "only the times of a few items are missing" '.attributed == "ticks" and (.missing | length <= 1 and all(test("^[0-9]+ items?: not timed"))) and
    ([.missing[] | scan("^[0-9]+") | tonumber] | add // 0) <= '"$missed"' * ([.workqueues[].items] | add)' ;;
esac
holds "it used CPUs, no more than there are" '.work[0].cpu | . > 0.05 and . <= 8'
holds "its kworkers have names, CPUs and the CPU time" '.work[0] | .cpu as $cpu | (.kworkers | length > 0 and
  all(.name | test("^kworker/u?[0-9]+:[0-9]+H?$"))) and (.kworkers | map(.cpu) | add - $cpu | fabs < 1e-6) and
  any(.kworkers[]; .allowed != null)'
holds "it is most of what the tasks used" '.work[0].cpu > 0.5 * .cpu and .unsampled < 0.2 * .cpu'
holds "items and their time" '.work[0] | .per_second > 10 and .mean_ns > 0'
holds "the lock's share" '.workqueues[0].lock_share | . > 0 and . <= 1'
holds "its scope" '.workqueues[0] | .target == "'"$unbound"'" and .scope != null and .max_active > 1 and .pool_cpus >= 1'
# Each CPU is a socket here: nothing is finer than one core.
holds "scopes to try" '.workqueues[0] | .finer == [] and .coarser != []'
holds "no address gets out" '([.. | numbers | select(. > 1e18)] | length == 0) and (tostring | test("ffff[0-9a-f]{12}|address") | not)'
nothing_left "after a look"

note "-- the same in plain words, and after a finer scope can help"
wq-tunectl diagnose | tee $dir/text
fits $dir/text
grep -qE "^[0-9]+\.[0-9]+ CPUs in kcryptd_crypt \[dm_crypt\] of $unbound \(unbound\)$" <(head -n 1 $dir/text) || fail "not the first line"
grep -q "wq-tunectl ab --target $unbound --arms [a-z_]*,.* -- COMMAND" $dir/text || fail "no hint"
echo system >"$workqueues/$unbound/affinity_scope"
wq-tunectl diagnose --json --seconds 2 >$dir/json
holds "one pool, and finer scopes" '.workqueues[] | select(.name == "'"$unbound"'") | .scope == "system" and (.finer | length > 0) and .pool_cpus == 8'
echo default >"$workqueues/$unbound/affinity_scope"

note "-- however it ends"
for signal in INT TERM KILL; do
  wq-tunectl diagnose --seconds 600 --json >$dir/json &
  pid=$!
  wait_until 60 watches_ticks || fail "not attached"
  sleep 2
  kill -$signal $pid
  rc=0
  wait $pid || rc=$?
  case $signal in
    KILL) check_eq "SIGKILL: exit code" 137 $rc ;;
    *)
      check_eq "SIG$signal: exit code" 0 $rc
      holds "SIG$signal: what was seen until then" '.seconds < 100 and .work[0].workqueue == "'"$unbound"'"'
      ;;
  esac
  nothing_left "SIG$signal"
done

note "-- without BPF"
for command in "setpriv --reuid=65534 --clear-groups" "setpriv --bounding-set=-bpf,-perfmon,-sys_admin --inh-caps=-all"; do
  rc=0
  # shellcheck disable=SC2086
  $command wq-tunectl diagnose --seconds 1 >$dir/text 2>$dir/err || rc=$?
  check_eq "exit code" 1 $rc
  grep -q 'BPF is denied' $dir/err || fail "does not say why: $(cat $dir/err)"
done
load_off

note "-- a mapping that bypasses its workqueue"
# udev is stopped, so that dmsetup would wait for it for ever.
dmsetup create --noudevsync c2 --table "0 131072 crypt aes-xts-plain64 $key$(rev <<<"$key") 0 /dev/ram2 0 1 no_read_workqueue"
bypassed=$(wq_of c2)
wq-tunectl diagnose --json --seconds 1 >$dir/json
holds "it is named, and no other" '.bypassed == [{"workqueue": "'"$bypassed"'", "options": ["no_read_workqueue"]}]'
wq-tunectl explain "$bypassed" | tr -s ' \n' ' ' | grep -q 'mapping reads bypass this workqueue' || fail "explain does not say so"
check_eq "explain of another" '[]' "$(wq-tunectl explain "$unbound" --json | jq -c .bypass)"
setpriv --reuid=65534 --clear-groups wq-tunectl explain "$bypassed" | tr -s ' \n' ' ' | grep -q 'only root may read it' || fail "does not say that it is not seen"
dmsetup remove --noudevsync --retry c2

note "-- per-CPU work"
load_on c1
sleep 2
wq-tunectl diagnose --json --seconds 3 >$dir/json
jq -c '.work[0]' $dir/json
holds "named as what it is" '.work[0] | .workqueue == "'"$percpu"'" and .kind == "per-cpu" and .function == "kcryptd_crypt [dm_crypt]"'
holds "no scope reaches it" '.workqueues[] | select(.name == "'"$percpu"'") | .scope == null and .finer == [] and .coarser == [] and .target == null'
wq-tunectl diagnose --seconds 2 >$dir/text
tr -s ' \n' ' ' <$dir/text | grep -q 'affinity scopes and the masks' || { cat $dir/text; fail "does not say so"; }
load_off

note "-- isolated CPUs"
partition_made 6-7
wq-tunectl diagnose --seconds 600 --json >$dir/json &
pid=$!
wait_until 60 watches_ticks || fail "not attached"
sleep 4 # it begins to count after it has attached
blocks=1000
bash -c 'echo $$ >'$cgroup'/cgroup.procs && exec taskset -c 7 dd if=/dev/zero of=/dev/mapper/c1 bs=4k count='$blocks' oflag=direct' 2>/dev/null
sleep 1
kill -INT $pid
wait $pid || fail "exit code $?"
jq -c '.isolated.work[]' $dir/json
holds "their list" '.isolated.cpus == "6-7"'
holds "the disturber, exactly as often as it was" '.isolated.work[] | select(.workqueue == "'"$percpu"'").items == '$blocks
rmdir $cgroup
nothing_left "at the end"
crypt_close_both
