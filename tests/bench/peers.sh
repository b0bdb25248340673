#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The cost of wq-tuned compared with similar daemons, each with its packaged unit, in one run in one guest:
#   peers.sh    as root, on a machine without other use: starts and stops them, and makes crypt devices on
#               /dev/ram0
# IDLE (default 600) is the idle time in seconds, DEVICES (50) the number of crypt devices, STARTS (3) the
# starts of each.
#
#   rss anon pss  kB at the end of the idle time, from /proc/PID/status and smaps_rollup. The page cache of a
#                 guest has all files, so each page fault maps more pages around it than on a disk; rss
#                 contains them.
#   sleeps        per second: voluntary switches of all threads, that is, how often they were woken
#   switches      per second: voluntary and involuntary switches
#   cpu           us per second, of the unit's cgroup (cpu.stat), children included. In `./dev bench peers`
#                 the guest's clock counts instructions, 1 ns each (boot.sh --icount), and idle time passes at
#                 once: other load has no effect
#   ready         ms from the start of the main process until its unit is started, median (Type=simple: at once)
#   uevent to written: from udev's event (time of receipt by `udevadm monitor`; and from the kernel's event)
#                 until the daemon logs that the file has the scope (time of the journal socket, so after the
#                 write and the read-back)
set -euo pipefail
idle=${IDLE:-600} devices=${DEVICES:-50} starts=${STARTS:-3}
units=(wq-tuned irqbalance tuned systemd-oomd)
coalescing=200 # ms, as in Coalescer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

median() { sort -n | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
rank99() { sort -n | awk '{v[NR] = $1} END {n = int(NR * 0.99 + 0.999999); print v[n]}'; }
property() { systemctl show -P "$2" "$1"; }
pid_of() { property "$1" MainPID; }
field() { awk -v key="$2:" '$1 == key {print $2}' "/proc/$(pid_of "$1")/$3"; }
usage() { awk '$1 == "usage_usec" {print $2}' "/sys/fs/cgroup$(property "$1" ControlGroup)/cpu.stat"; }
switches() { awk '/^voluntary_ctxt/ {n += $2} /voluntary_ctxt/ {all += $2} END {print n, all}' "/proc/$(pid_of "$1")"/task/*/status; }
counts() { echo "$1 $(switches "$1") $(usage "$1")"; }
row() { printf '%-14s %8s %8s %8s %8s %9s %8s %8s %-14s\n' "$@"; }
verdict() { [[ $1 && $2 ]] || { echo "NOT MEASURED"; return; }; awk -v a="$1" -v b="$2" 'BEGIN {print (a + 0 <= b + 0) ? "held" : "NOT HELD"}'; }
bound() { printf '%-46s %-34s %s\n' "$@"; }

start_to_ready() {
  local unit i
  systemctl stop "${units[@]}"
  for unit in "${units[@]}"; do
    for ((i = 0; i < starts; i++)); do
      systemctl reset-failed "$unit" 2>/dev/null || true
      systemctl restart "$unit"
      sleep 3
      echo $((($(property "$unit" ActiveEnterTimestampMonotonic) - $(property "$unit" ExecMainStartTimestampMonotonic)) / 1000))
    done >"$work/ready.$unit"
  done
}

# Waits first until all have settled: tuned and udev are busy for a while.
sit_idle() {
  local unit
  sleep "${SETTLE:-60}"
  for unit in "${units[@]}"; do counts "$unit"; done >"$work/before"
  sleep "$idle"
  for unit in "${units[@]}"; do counts "$unit"; done >"$work/after"
  row unit rss anon pss sleeps switches cpu ready type
  for unit in "${units[@]}"; do
    # shellcheck disable=SC2046 # words
    row "$unit" "$(field "$unit" VmRSS status)" "$(field "$unit" RssAnon status)" "$(field "$unit" Pss smaps_rollup)" \
      $(paste "$work/before" "$work/after" | awk -v u="$unit" -v s="$idle" \
        '$1 == u {printf "%.3f %.3f %.1f", ($6 - $2) / s, ($7 - $3) / s, ($8 - $4) / s}') \
      "$(median <"$work/ready.$unit")" "$(property "$unit" Type)"
  done
}

# Prints the number of armed timers of the event loop.
timers() {
  local fd n=0
  for fd in "/proc/$(pid_of wq-tuned)"/fdinfo/*; do
    if grep -qE '^it_value: \(([1-9]|0, [1-9])' "$fd"; then n=$((n + 1)); fi
  done
  echo $n
}

mapped() {
  awk '/^[0-9a-f]+-/ {n = split($6, part, "/"); name = $6 == "" ? "[anon]" : part[n]}
    $1 == "Rss:" {rss[name] += $2} $1 == "Anonymous:" {anon[name] += $2}
    END {for (name in rss) if (rss[name]) print rss[name], anon[name], name}' "/proc/$(pid_of "$1")/smaps" | sort -rn | head -n "$2"
}

# Writes ms from the kernel's event and from udev's event, one line each per device, to $work/latency.
uevents() {
  local i key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef monitor
  mkdir -p /etc/wq-tuned
  printf '[[workqueue]]\nmatch = "kcryptd-*"\nscope = "%s"\n' "${SCOPE:-system}" >/etc/wq-tuned/wq-tuned.toml
  systemctl reload wq-tuned
  [ -e /dev/ram0 ] || modprobe brd rd_nr=1 rd_size=65536
  udevadm monitor --subsystem-match=workqueue >"$work/events" &
  monitor=$!
  sleep 2
  for ((i = 0; i < devices; i++)); do
    dmsetup create "u$i" --table "0 128 crypt aes-xts-plain64 $key$(rev <<<"$key") 0 /dev/ram0 $((i * 128))"
    sleep 1.5
  done
  kill "$monitor"
  journalctl --sync
  # The message `applied` has the workqueue, the time of receipt by both clocks, and the time of sending.
  journalctl -u wq-tuned -o json --output-fields=WQ_NAME,WQ_SCOPE_NEW,_SOURCE_REALTIME_TIMESTAMP |
    jq -r --arg scope "${SCOPE:-system}" 'select(.WQ_SCOPE_NEW == $scope) | (.WQ_NAME // empty) as $name | [$name,
      (._SOURCE_REALTIME_TIMESTAMP | tonumber) - (.__REALTIME_TIMESTAMP | tonumber) + (.__MONOTONIC_TIMESTAMP | tonumber)] | @tsv' >"$work/written"
  sed -nE 's#^(KERNEL|UDEV) *\[([0-9.]+)\] add +.*/workqueue/(kcryptd-[^ ]*) .*#\1 \2 \3#p' "$work/events" |
    awk -v written="$work/written" 'BEGIN {while ((getline <written) > 0) at[$1] = $2} $3 in at {printf "%s %.1f\n", $1, at[$3] / 1000 - $2 * 1000}' >"$work/latency"
  for ((i = 0; i < devices; i++)); do dmsetup remove --retry "u$i"; done
}
since() { awk -v from="$1" '$1 == from {print $2}' "$work/latency"; }

start_to_ready
printf '\n-- %s s idle beside each other, %s, %s CPUs\n' "$idle" "$(uname -r)" "$(nproc)"
sit_idle
rss=$(field wq-tuned VmRSS status) anon=$(field wq-tuned RssAnon status) peer=$(field irqbalance VmRSS status)
armed=$(timers) attached=$(/usr/lib/wq-tests/count-work --loaded | jq length)
printf '\n-- what wq-tuned has mapped, kB: resident, of it anonymous\n'
mapped wq-tuned 24
printf '\n-- irqbalance\n'
mapped irqbalance 12
uevents
n=$(since UDEV | wc -l)
printf '\n-- uevent to written, %s devices: ms, median / p99 / most; coalescing %s ms\n' "$n" $coalescing
for from in UDEV KERNEL; do
  printf '%-7s %s / %s / %s\n' $from "$(since $from | median)" "$(since $from | rank99)" "$(since $from | sort -n | tail -n 1)"
done

printf '\n'
bound bound measured ""
bound "idle: no timer but the watchdog's" "$armed set" "$(verdict "$armed" 1)"
bound "idle: no probe attached" "$attached programs loaded" "$(verdict "$attached" 0)"
bound "RssAnon at most 1024 kB" "$anon kB" "$(verdict "$anon" 1024)"
bound "RSS at most 1.5 times irqbalance's" "$rss / $peer kB = $(awk -v a="$rss" -v b="$peer" 'BEGIN {printf "%.2f", a / b}')" \
  "$(verdict "$rss" "$(awk -v b="$peer" 'BEGIN {print 1.5 * b}')")"
bound "uevent to written: below 1.5 times $coalescing ms" "median $(since UDEV | median), p99 $(since UDEV | rank99) ms" \
  "$(verdict "$(since UDEV | rank99)" $((coalescing * 3 / 2)))"
[ "$n" -ge "$devices" ]
