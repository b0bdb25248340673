# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 400
# Isolated CPUs and their kind; the per-CPU work that ran on them, with the same counts as the load; the
# kernel's features.
. lib.sh
cpus=/sys/devices/system/cpu
out=/run/wq-tests/isolation.json
put_back() {
  udevadm control --start-exec-queue
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
blocks=500
this='(.isolated.work[] | select(.workqueue == "'$pinned'"))'

note "-- watched without the daemon"
systemctl stop wq-tuned
wq-tunectl diagnose --seconds 600 --json >"$out" &
pid=$!
wait_until 60 watches_ticks || fail "not attached"
sleep 4 # it begins to count after it has attached
write_blocks $blocks
sleep 1
kill -INT $pid
wait $pid || fail "exit code $?"
jq -c .isolated "$out"
holds "the isolated CPUs" '.isolated.cpus != ""'
holds "the disturber, exactly as often as it was" "$this | .items == $blocks"
expect_no_probes
wq-tunectl diagnose --seconds 2

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
crypt_close_both
