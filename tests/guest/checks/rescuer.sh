# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 900
# The items that a rescuer runs are counted: as many as the kernel's own trace events say. A rescuer helps a pool that
# gets no new kworker within 10 ms (kernel/workqueue.c, maybe_create_worker()). Under memory pressure that is so by
# chance. Here kthreadd, which makes kworkers, gets no CPU: it must stay on CPU 7, which a real-time task occupies.
. lib.sh

crypt_c0
folder=/var/lib/prometheus/node-exporter
file=$folder/wq-tuned.prom
install -d -m 0755 $folder
tracing=/sys/kernel/tracing
kthreadd=2
event=$tracing/events/workqueue/workqueue_execute_start
free_kthreadd() {
  [ -z "${hog:-}" ] || kill "$hog" 2>/dev/null || true
  taskset -pc "$(cat /sys/devices/system/cpu/online)" $kthreadd >/dev/null
}
put_back() {
  load_off
  free_kthreadd
  rm -rf /var/lib/prometheus
  echo 0 >$event/enable || true
}
load=""
trap put_back EXIT
apply_policy plan
printf '[metrics]\ntextfile = "%s"\n' $file >>/etc/wq-tuned/wq-tuned.toml
health() { sed -nE "s/^wq_tuned_workqueue_$1\{workqueue=\"$wq\"\} (.*)/\1/p" $file 2>/dev/null; }
has() { [ -n "$(health "$1")" ]; }
systemctl start wq-tuned
wait_until 300 has rescued_total || fail "no health of $wq: $(grep wq_tuned_workqueue $file)"
before=$(health rescued_total)

mountpoint -q $tracing || mount -t tracefs tracefs $tracing
echo 65536 >$tracing/buffer_size_kb
echo >$tracing/trace
# The device has another workqueue, kcryptd_io: its rescuer has the same name, which is cut off, and nothing to do.
mapfile -t rescuers < <(grep -lx "kworker/R-kcryp.*" /proc/[0-9]*/comm 2>/dev/null | cut -d/ -f3)
[ ${#rescuers[@]} -gt 0 ] || fail "$wq has no rescuer"
filter=$(printf ' || common_pid == %s' "${rescuers[@]}")
echo "${filter# || }" >$event/filter
echo 1 >$event/enable

rescued() { grep -c "workqueue_execute_start" $tracing/trace || true; }
# Another nice value gives the workqueue pools of its own, which have one kworker each. Another scope does not here:
# each CPU is an LLC, so that the pods of `cpu` are those of `cache`, and the pool of `system` is the default of every
# workqueue. Workqueues of equal nice value and CPUs share pools (wqattrs_equal()), and those have idle kworkers.
for nice in 1 2 3 4; do
  echo $nice >"/sys/devices/virtual/workqueue/$wq/nice"
  chrt -f 50 taskset -c 7 sh -c 'while :; do :; done' &
  hog=$!
  taskset -pc 7 $kthreadd >/dev/null
  load_on c0 8 --cpus_allowed=0-6
  sleep 4
  free_kthreadd
  load_off
  note "nice $nice: $(rescued) items so far"
  [ "$(rescued)" = 0 ] || break # a further change of the pools may lose counts
done
sleep 1 # the last items end
echo 0 >$event/enable
ran=$(rescued)
note "the rescuer ran $ran items"
[ "$ran" -gt 0 ] || fail "it ran nothing"
all_counted() { [ "$(($(health rescued_total) - before))" -ge "$ran" ]; }
wait_until 200 all_counted || fail "rescued_total grew by $(($(health rescued_total) - before))"
check_eq "the metric grew by" "$ran" "$(($(health rescued_total) - before))"
[ "$(health maydays_total)" -gt 0 ] || fail "no call for the rescuer was counted"
systemctl stop wq-tuned
