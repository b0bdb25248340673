# SPDX-License-Identifier: LGPL-2.1-or-later
# What the daemon does to a kernel, a thousand times faster: scopes are switched as fast as the writes return, while work waits
# at max_active and CPUs come and go. A scope write releases every old pool_workqueue; kernels before 7.3-rc1 put the pool of
# one too early (cf9c8aaea0d4). The boot has slub_debug=FZP, so that the use of a freed pool shows. No item may be lost:
# fio reads back each block that it has written, with its checksum, and ends only when all items have come back.
# timeout: 1500
. lib.sh
. storm.sh

seconds=$(scaled 600 60)
grep -q slub_debug=FZP /proc/cmdline || fail "the boot has no slub_debug=FZP"
check_eq "nodes" 0-1 "$(cat /sys/devices/system/node/online)"
sysctl -qw kernel.watchdog_thresh=60 kernel.watchdog=1 # boot.sh has nowatchdog; 60 s: two CPUs emulate eight
crypt_open c0 0
wq=$(wq_of c0)
echo 2 >"$workqueues/$wq/max_active" # eight writers: most items wait
mapfile -t scopes < <(for scope in cpu smt cache cache_shard numa system; do
  echo $scope >"$workqueues/$wq/affinity_scope" 2>/dev/null && echo $scope
done)
note "scopes: ${scopes[*]}"
ended=/run/wq-tests/ended
rm -f $ended

switch() { # until $ended exists; prints the number of writes
  local n=0
  while [ ! -e $ended ]; do
    echo "${scopes[n % ${#scopes[@]}]}" >"$workqueues/$wq/affinity_scope" || { echo "write $n failed"; return 1; }
    n=$((n + 1))
  done
  echo $n
}
plug() { # the same with CPUs
  local n=0 cpu
  while [ ! -e $ended ]; do
    cpu=/sys/devices/system/cpu/cpu$((1 + n % 7))/online
    if ! echo 0 >"$cpu" || ! echo 1 >"$cpu"; then echo "cycle $n failed" && return 1; fi
    n=$((n + 1))
  done
  echo $n
}
switch >/run/wq-tests/switched &
switching=$!
plug >/run/wq-tests/plugged &
plugging=$!
trap 'touch $ended' EXIT

rounds=0 items=0 until=$((SECONDS + seconds))
while [ $SECONDS -lt $until ]; do
  timeout 300 fio --name=count --filename=/dev/mapper/c0 --rw=randwrite --bs=4k --size=4m --numjobs=8 --offset_increment=4m --iodepth=8 \
    --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --do_verify=1 --output-format=json --output=/run/wq-tests/fio ||
    { rc=$?; cat /run/wq-tests/fio || true; fail "round $rounds: exit code $rc: an item was lost, or its data"; }
  rounds=$((rounds + 1)) items=$((items + $(jq '[.jobs[] | .read.total_ios + .write.total_ios] | add' <(sed -n '/^{/,$p' /run/wq-tests/fio))))
done
touch $ended
wait $switching || fail "$(cat /run/wq-tests/switched)"
wait $plugging || fail "$(cat /run/wq-tests/plugged)"
bad=$(dmesg | grep -E 'BUG|Oops|WARNING|KASAN|Poison overwritten|Redzone|stall|lockup|hung task|list_(add|del) corruption' || true)
check_eq "complaints of the kernel" "" "$bad"
check_eq "items" $((rounds * 8 * 1024 * 2)) $items # each block is written and read back
[ "$(cat /run/wq-tests/switched)" -gt "$seconds" ] || fail "only $(cat /run/wq-tests/switched) switches"
note "figures: $(cat /run/wq-tests/switched) switches, $(cat /run/wq-tests/plugged) CPUs off and on, $items items came back, in $seconds s"
echo default >"$workqueues/$wq/affinity_scope"
