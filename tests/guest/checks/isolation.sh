# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 400
# Isolated CPUs and their kind; the work that ran on them, with the same counts as the kernel and the load;
# the kernel's features.
. lib.sh
count_work=/usr/lib/wq-tests/count-work
cpus=/sys/devices/system/cpu
cgroup=/sys/fs/cgroup/rt
tracing=/sys/kernel/tracing
out=/run/wq-tests/isolation.json
# From 7.0 on a tracepoint can be preempted (for long in an emulator), and the counters then miss some items.
case $guest_kernel in 6.*) missed=0 ;; *) missed=0.01 ;; esac
put_back() {
  udevadm control --start-exec-queue
  [ ! -e $tracing/events/workqueue ] || { echo 0 >$tracing/events/workqueue/enable; echo >$tracing/trace; }
  rmdir $cgroup 2>/dev/null || true
}
trap put_back EXIT

holds() { # WHAT EXPRESSION: fails unless it is true for $out
  [ "$(jq "$2" "$out")" = true ] || { jq . "$out"; fail "$1: not so: $2"; }
  note "ok: $1"
}
isolation() { status | jq -c .isolation; }
isolation_is() { [ "$(isolation | jq -cS "$1")" = "$2" ]; }
becomes() { # WHAT VALUE EXPRESSION, of .isolation; status.json follows every 30 s
  wait_until 60 isolation_is "$3" "$2" || true
  check_eq "$1" "$2" "$(isolation | jq -cS "$3")"
}
listed() { local list; list=$(cat "$1" 2>/dev/null || true); case $list in *null*) ;; *) echo "$list" ;; esac; }

note "-- the kernel's features"
case $guest_kernel in
  6.12) features='{"cache_shard":false,"pwlocks":false}' ;;
  7.2) features='{"cache_shard":true,"pwlocks":false}' ;;
esac
check_eq "features, seen without a daemon" "$features" "$(status | jq -cS .kernel.features)"
systemctl start wq-tuned
rss() { awk '/RssAnon/ {print $2}' "/proc/$(systemctl show -P MainPID wq-tuned)/status"; }
note "RssAnon before the first status: $(rss) kB"
check_eq "features, seen by the daemon in its sandbox" "$features" "$(status | jq -cS .kernel.features)"
check_eq "release" "$(uname -r)" "$(status | jq -r .kernel.release)"
note "RssAnon after it: $(rss) kB"
[ "$(rss)" -le 1024 ] || fail "what was read to tell the features is still in memory"

note "-- isolated at boot"
check_eq "isolcpus" "$(listed $cpus/isolated)" "$(isolation | jq -r .isolcpus)"
check_eq "nohz_full" "$(listed $cpus/nohz_full)" "$(isolation | jq -r .nohz_full)"
case $guest_append in
  *isolcpus=*) cpu=4; check_eq "isolcpus is what the command line says" 4-5 "$(isolation | jq -r .isolcpus)" ;;
  *nohz_full=*) cpu=6; check_eq "nohz_full is what the command line says" 6-7 "$(isolation | jq -r .nohz_full)" ;;
esac
check_eq "no partition" '[]' "$(isolation | jq -c .partitions)"

note "-- what runs on CPU $cpu: a disk of which every block is encrypted on the CPU that writes it"
# With same_cpu_crypt the device's kcryptd is a per-CPU workqueue.
key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
crypt_open c0
dmsetup create c1 --table "0 131072 crypt aes-xts-plain64 $key$(rev <<<"$key") 0 /dev/ram1 0 1 same_cpu_crypt"
pinned=$(wq_of c1)
check_eq "$pinned is per-CPU" 1 "$(cat "$workqueues/$pinned/per_cpu")"
udevadm settle
udevadm control --stop-exec-queue # udev would read the device after a write
write_blocks() { taskset -c "$cpu" dd if=/dev/zero of=/dev/mapper/c1 bs=4k count="$1" oflag=direct 2>/dev/null; }
if [ -e $tracing/events/workqueue ]; then
  printf '%x' $((1 << cpu)) >$tracing/tracing_cpumask
  echo 1 >$tracing/events/workqueue/workqueue_execute_start/enable
else
  note "not here: what the tracer sees"
fi
sysctl -q kernel.bpf_stats_enabled=1
run() { # EXTRA...: counts for some seconds under the load; writes $out
  : >/run/wq-tests/err
  "$count_work" "$pinned" 8 "$@" >"$out" 2>/run/wq-tests/err &
  wait_until 60 grep -q begun /run/wq-tests/err || fail "count-work: $(cat /run/wq-tests/err)"
  write_blocks 400
  wait $! || fail "count-work: $(cat /run/wq-tests/err)"
}
run --watch "$cpu"
programs='programs: (.programs | map_values(.ns / ([.runs, 1] | max) | round))'
jq -c ".watched, {items: .windows[0].items, $programs}" "$out"
this='(.watched.work[] | select(.workqueue == "'$pinned'" and .function == "kcryptd_crypt [dm_crypt]"))'
holds "per-CPU, by workqueue and function" "$this.per_cpu"
holds "as many as blocks were written" "$this.items as \$n | \$n <= 400 and \$n >= 400 * (1 - $missed)"
holds "nothing was lost, and the time is right" '.watched | .lost == 0 and .seconds >= 8'
if [ -e $tracing/events/workqueue ]; then
  echo 0 >$tracing/events/workqueue/workqueue_execute_start/enable
  sed -nE 's/.*workqueue_execute_start: .*function ([^ ]+).*/\1/p' $tracing/trace | sort | uniq -c |
    awk '{print $2, $1}' >/run/wq-tests/traced
  note "traced on CPU $cpu: $(tr '\n' ';' </run/wq-tests/traced)"
  # Tracing gives names without modules. It began before the counting and ended after it.
  jq -r '.watched.work | group_by(.function)[] | "\(.[0].function | split(" ")[0]) \(map(.items) | add)"' "$out" |
    while read -r function items; do
      traced=$(awk -v f="$function" '$1 == f {print $2}' /run/wq-tests/traced)
      [ "${traced:-0}" -ge "$items" ] || fail "$function: $items counted, ${traced:-0} traced"
    done
  note "ok: no function is there that the tracer did not see there as often"
fi
run
jq -c "{items: .windows[0].items, $programs}" "$out"
sysctl -q kernel.bpf_stats_enabled=0
holds "nothing is watched where no CPU is named" '.watched == {"seconds": 0, "lost": 0, "work": []}'

note "-- counted during a trial"
systemctl stop wq-tuned
trial_policy auto 'max_pairs = 64'
systemctl start wq-tuned
check_eq "nothing so far" '{"work":[],"work_lost":0,"work_seconds":0}' \
  "$(isolation | jq -cS '{work, work_lost, work_seconds}')"
wq=$(wq_of c0)
load_on c0
wq-tunectl compare "$wq" --with smt >/dev/null 2>&1 &
wait_until 60 has_pairs "$wq" 1 || fail "no pair: $(target "$wq" reason)"
sleep 1
write_blocks 300
this='(.work[] | select(.workqueue == "'$pinned'" and .function == "kcryptd_crypt [dm_crypt]"))'
counted() { isolation >"$out"; [ "$(jq "$this | .items >= 300 * (1 - $missed)" "$out")" = true ]; }
wait_until 60 counted || true # status.json follows counts every 30 s
holds "while it runs" "$this | .kind == \"per-cpu\" and .items <= 300 and .items >= 300 * (1 - $missed)"
wq-tunectl revert "$wq"
load_off
expect_no_probes
isolation >"$out.later"
check_eq "and when it has ended" "$(jq -c "$this" "$out")" "$(jq -c "$this" "$out.later")"
jq -e '.work_seconds > 0 and .work_lost == 0' "$out.later" >/dev/null || fail "time: $(cat "$out.later")"
wq-tunectl status
wq-tunectl status | grep -q 'counted during experiments' || fail "status says nothing of it"
wq-tunectl status | grep -q "$pinned .*per-cpu .*kcryptd_crypt \[dm_crypt\]" || fail "status has no line of it"

note "-- watched at once, without the daemon"
systemctl stop wq-tuned
loaded() { "$count_work" --loaded | jq -e 'has("wqt_profile_sta")' >/dev/null; } # the kernel cuts a name after 15 characters
wq-tunectl status --isolation --seconds 600 --json >"$out" &
pid=$!
wait_until 60 loaded || fail "not attached"
sleep 2
blocks=500
write_blocks $blocks
sleep 1
kill -INT $pid
wait $pid || fail "exit code $?"
jq -c 'del(.work), .work[]' "$out"
this='(.work[] | select(.workqueue == "'$pinned'" and .function == "kcryptd_crypt [dm_crypt]"))'
holds "the isolated CPUs" '.cpus == .isolcpus + .nohz_full and .cpus != ""'
holds "the disturber, as often as it was" "$this | .kind == \"per-cpu\" and .items <= $blocks and .items >= $blocks * (1 - $missed)"
holds "and who queued it" "$this | [.origins[] | select(.task == \"dd\" and (.timer | not) and .cpu == $cpu).items] | add >= $blocks * (1 - $missed)"
holds "not more often than it was" "$this | (.origins | map(.items) | add) <= $blocks"
holds "nothing is missing" '.work_lost == 0 and .missing == [] and .work_seconds > 1'
expect_no_probes
wq-tunectl status --isolation --seconds 2 | tee "$out.text"
grep -qE '(items? started|No work item started) on isolated CPUs' "$out.text" || fail "no sum"

systemctl start wq-tuned

note "-- a cpuset partition"
# With CPUs that are neither in isolcpus nor in nohz_full.
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
mkdir $cgroup
echo 2-3 >$cgroup/cpuset.cpus
echo root >$cgroup/cpuset.cpus.partition
becomes "a root partition" '[{"cgroup":"/rt","cpus":"2-3","type":"root"}]' .partitions
echo isolated >$cgroup/cpuset.cpus.partition
note "the kernel says: $(cat $cgroup/cpuset.cpus.partition); isolated: $(cat $cpus/isolated); unbound: $(cat $workqueues/cpumask)"
becomes "an isolated partition" '[{"cgroup":"/rt","cpus":"2-3","type":"isolated"}]' .partitions
wq-tunectl status | grep -q 'isolated partition *2-3 */rt' || { wq-tunectl status; fail "not in the text"; }
echo member >$cgroup/cpuset.cpus.partition
becomes "a member is none" '[]' .partitions
rmdir $cgroup

note "-- boot options"
wq-tunectl plan --boot
wq-tunectl plan --boot --json | jq -e '.boot == []' >/dev/null || fail "advice that nobody asked for"
wq-tunectl plan --boot --shard-size 2
option=$(wq-tunectl plan --boot --shard-size 2 --json | jq -r '.boot[].option')
case $guest_kernel,$guest_append in
  7.2,*isolcpus=*) check_eq "the pods of the next boot are unknown: no advice" "" "$option" ;;
  7.2,*) check_eq "shards of two" workqueue.cache_shard_size=2 "$option" ;;
  *) check_eq "no shards to size" "" "$option" ;;
esac
udevadm control --start-exec-queue # a disk can be removed only after udev has processed it
udevadm settle
crypt_close c1
crypt_close c0
