# SPDX-License-Identifier: LGPL-2.1-or-later
# udev's queue overflows while the daemon is stopped (SIGSTOP): a full look finds all changes that it missed.
# timeout: 3000
. lib.sh
. storm.sh

per_round=$(scaled 500 100)
# The daemon has no capability to exceed rmem_max. It is a tenth of the default here, because an emulated udev
# is slow.
rmem_max=$(cat /proc/sys/net/core/rmem_max)
echo 16384 >/proc/sys/net/core/rmem_max
trap 'echo "$rmem_max" >/proc/sys/net/core/rmem_max' EXIT
crypt_open c0 0
crypt_open c1 1
wq0=$(wq_of c0) wq1=$(wq_of c1)
apply_policy "$(other_scope)"
# No tick finds the changes earlier, and no watchdog ends the daemon.
drop_in wq-tuned.service <<EOF
[Service]
WatchdogSec=0
Environment=WATCHDOG_USEC=7200000000
EOF
start_to "$wq0" "$(other_scope)"
expect_scope "$wq1" "$(other_scope)"

uevents() { # N
  local n=0 file
  while :; do
    for file in "$workqueues"/*/uevent; do
      [ "$n" -lt "$1" ] || return 0
      echo change >"$file" 2>/dev/null || continue
      n=$((n + 1))
    done
  done
}
overflows() { grep -c "udev's queue overflowed" <<<"$(own_lines)" || true; }
overflowed() { [ "$(overflows)" -gt "$1" ]; }

storm_begin
for round in 1 2 3 4 5 6 7 8; do
  before=$(overflows)
  reads=$(daemon_field topology_reads)
  kill -STOP "$storm_pid"
  uevents "$per_round"
  udevadm settle --timeout=600
  # The queue is full: the daemon gets no event for these changes.
  crypt_close c0
  echo 0 >/sys/devices/system/cpu/cpu5/online
  crypt_open c2 2
  udevadm settle --timeout=600
  wq2=$(wq_of c2)
  scope_is "$wq2" default || fail "set by a daemon that stands still"
  kill -CONT "$storm_pid"
  wait_until 120 overflowed "$before" || fail "round $round: no overflow after $per_round events"
  wait_until 120 scope_is "$wq2" "$(other_scope)" || fail "round $round: the device that came was not found"
  wait_until 120 entries_are 2 || fail "round $round: $(entries) entries"
  [ "$(daemon_field topology_reads)" -gt "$reads" ] || fail "round $round: the topology was not read"
  check_eq "round $round: applied" 2 "$(applied)"
  expect_planned
  sample
  echo 1 >/sys/devices/system/cpu/cpu5/online
  crypt_close c2
  crypt_open c0 0
  wait_until 120 scope_is "$(wq_of c0)" "$(other_scope)" || fail "round $round: the next device was not found"
done
note "figures: $per_round events a round, $(overflows) overflows said"
storm_end 60
