# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 900
# The items that a rescuer runs under memory pressure are counted: those of the kernel's own trace events.
. lib.sh

crypt_c0
folder=/var/lib/prometheus/node-exporter
file=$folder/wq-tuned.prom
install -d -m 0755 $folder
tracing=/sys/kernel/tracing
least=$(cat /proc/sys/vm/min_free_kbytes)
put_back() {
  load_off
  echo "$least" >/proc/sys/vm/min_free_kbytes
  echo 0 >$tracing/events/workqueue/workqueue_execute_start/enable
  rm -rf /var/lib/prometheus
}
trap put_back EXIT
apply_policy plan
printf '[metrics]\ntextfile = "%s"\n' $file >>/etc/wq-tuned/wq-tuned.toml
health() { sed -nE "s/^wq_tuned_workqueue_$1\{workqueue=\"$wq\"\} (.*)/\1/p" $file 2>/dev/null; }
has() { [ -n "$(health "$1")" ]; }
systemctl start wq-tuned
wait_until 300 has rescued_total || fail "no health of $wq: $(grep wq_tuned_workqueue $file)"
# The daemon looks before writes of its own, which zero the kernel's counts, and once a minute.
before=$(health rescued_total)

mountpoint -q $tracing || mount -t tracefs tracefs $tracing
echo 65536 >$tracing/buffer_size_kb
echo >$tracing/trace
rescuer=$({ grep -lxE "(kworker/R-)?$wq" /proc/[0-9]*/comm 2>/dev/null || true; } | head -n 1 | cut -d/ -f3)
[ -n "$rescuer" ] || fail "$wq has no rescuer"
echo "common_pid == $rescuer" >$tracing/events/workqueue/workqueue_execute_start/filter
echo 1 >$tracing/events/workqueue/workqueue_execute_start/enable

# More free memory is asked for than there is, so each new kworker has to wait for memory. Each scope has new pools
# with few kworkers, and the writers bring more items than these can run.
awk '/^MemTotal/ { print int($2 * 0.9) }' /proc/meminfo >/proc/sys/vm/min_free_kbytes
rescued() { grep -c "workqueue_execute_start" $tracing/trace || true; }
load_on c0 16
for scope in system cpu system cpu system cpu; do
  wq-tunectl pin "$wq" $scope >/dev/null
  sleep 5
  [ "$(rescued)" -lt 50 ] || break
done
load_off
echo "$least" >/proc/sys/vm/min_free_kbytes
echo 0 >$tracing/events/workqueue/workqueue_execute_start/enable
ran=$(rescued)
note "the rescuer, process $rescuer, ran $ran items"
[ "$ran" -gt 0 ] || fail "it ran nothing"
all_counted() { [ "$(($(health rescued_total) - before))" -ge "$ran" ]; }
wait_until 200 all_counted || fail "rescued_total grew by $(($(health rescued_total) - before))"
check_eq "the metric grew by" "$ran" "$(($(health rescued_total) - before))"
[ "$(health maydays_total)" -gt 0 ] || fail "no call for the rescuer was counted"
systemctl stop wq-tuned
