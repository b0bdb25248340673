# SPDX-License-Identifier: LGPL-2.1-or-later
# @default is compared as a target. Work that is queued while it runs stays on its old pool, so the comparison
# has no result, and reports that.
# timeout: 400
. lib.sh

parameter=/sys/module/workqueue/parameters/default_affinity_scope
before=$(cat "$parameter")
put_back() {
  # shellcheck disable=SC2086
  kill $load 2>/dev/null || true
  wait
  losetup -D
  udevadm control --start-exec-queue
  rmmod null_blk 2>/dev/null || true
}
load=""
trap put_back EXIT
# A disk that answers after a second, with loop devices on it. Each has one work item that serves all
# requests. A request that comes while it runs queues it again on the pool where it runs, whatever the scope
# is then.
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=1000000000 gb=1 bs=4096
udevadm control --stop-exec-queue
read_at() { dd if="$1" of=/dev/null bs=4k count=1 skip="$2" iflag=direct 2>/dev/null; }
reader() { # DEVICE
  while :; do
    read_at "$1" "$RANDOM" &
    sleep 0.7
    read_at "$1" "$RANDOM"
    sleep "0.$((RANDOM % 3))"
  done
}
for i in 1 2 3 4 5 6; do
  loop=$(losetup -f --show /dev/nullb0)
  RANDOM=$i
  reader "$loop" &
  load="$load $!"
done

trial_policy leave
sed -i "s/^manage = false/manage = true\nscope = \"$(other_scope)\"/" /etc/wq-tuned/wq-tuned.toml
sed -i 's/^min_items = .*/min_items = 2/; s/^washout = .*/washout = "100ms"/' /etc/wq-tuned/wq-tuned.toml
systemctl start wq-tuned
wait_until 60 state_is @default comparing || fail "no comparison: $(target @default reason)"
wait_until 180 ended 1 || fail "no end: $(status | jq -c '.targets[0]')"
check_eq "the verdict" "undecided" "$(verdict verdict)"
check_eq "the reason" "work stays on old pools" "$(verdict reason)"
systemctl stop wq-tuned
check_eq "the default is as it was" "$before" "$(cat "$parameter")"
expect_no_probes
