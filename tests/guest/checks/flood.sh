# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A user floods the bus with calls that want no reply, small ones and long ones, and with calls whose replies
# are not read, while a comparison runs: the daemon's memory stays small, its timers come in time, no window
# is lost, and root's orders are answered within a second.
# timeout: 600
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh

seconds=20
crypt_open c0 0
crypt_open c1 1
wq=$(wq_of c0)
other=$(wq_of c1)
load_on c0 1
trap load_off EXIT
# Both arms make the same pools, so the trial goes on until max_pairs.
trial_policy leave 'max_pairs = 80' 'alpha = 0.001'
systemctl start wq-tuned
systemctl service-log-level wq-tuned debug
wq-tunectl trial "$wq" --arm cache --json >/run/wq-tests/trial 2>/run/wq-tests/progress &
trial=$!
wait_until 20 state_is "$wq" trial || fail "no trial: $(target "$wq" reason)"
pid=$(systemctl show -P MainPID wq-tuned)
cgroup=/sys/fs/cgroup$(systemctl show -P ControlGroup wq-tuned)
in_status() { awk -v key="$1:" '$1 == key {print $2}' "/proc/$pid/status"; } # kB
cpu_ticks() { awk '{print $14 + $15}' "/proc/$pid/stat"; }

# `phase NAME COMMAND...`: runs the command, and meanwhile root's orders. Sets late (ms), longest (ms), most
# (kB).
phase() {
  local name=$1 begin=$EPOCHREALTIME ticks
  shift
  echo 5 >"/proc/$pid/clear_refs" # resets VmHWM
  ticks=$(cpu_ticks)
  "$@" >/run/wq-tests/sent &
  local sender=$!
  /usr/lib/wq-tests/bus-flood orders $seconds "$other" system smt >/run/wq-tests/orders || fail "no orders ($name)"
  wait $sender || fail "$* failed"
  most=$(in_status VmHWM)
  longest=$(jq .longest_ms /run/wq-tests/orders)
  journalctl --sync
  late=$(journalctl -u wq-tuned -o cat --since="@$begin" | sed -nE "s/^a slot's timer came ([0-9]+) us late$/\1/p" | sort -n | tail -n 1)
  [ -n "$late" ] || fail "no timer ($name)"
  late=$((late / 1000))
  note "figures: $name: $(cat /run/wq-tests/sent) $(cat /run/wq-tests/orders), timers at most $late ms late, RSS at most $most kB, CPU ticks $(($(cpu_ticks) - ticks))"
}
flood() { setpriv --reuid=65534 --regid=65534 --clear-groups /usr/lib/wq-tests/bus-flood calls $seconds "$1"; }
# Checks the limits, on top of the delays of an undisturbed daemon in this emulator.
held() { # NAME
  [ "$most" -lt 16384 ] || wrong+=("RSS $most kB ($1)")
  [ "$late" -lt $((100 * ${patience:-1} + late_by_itself)) ] || wrong+=("a timer came $late ms late ($1)")
  [ "$longest" -lt $((1000 * ${patience:-1} + longest_by_itself)) ] || wrong+=("an order took $longest ms ($1)")
  [ "$(jq .failed /run/wq-tests/orders)" = 0 ] || wrong+=("orders failed ($1)")
}
wrong=() # collect all figures before failing

phase "no flood" sleep $seconds
late_by_itself=$late longest_by_itself=$longest
for kind in 0 262144 unread; do
  phase "calls, $kind" flood $kind
  held "$kind"
  phase "after it" sleep $seconds
  held "after $kind"
done
check_eq "the daemon is the one of before" "$pid" "$(systemctl show -P MainPID wq-tuned)"
note "figures: the cgroup's memory.peak $(($(cat "$cgroup/memory.peak") / 1024)) kB, pids.peak $(cat "$cgroup/pids.peak" 2>/dev/null || echo unknown)"

[ ${#wrong[@]} = 0 ] || fail "$(printf '%s; ' "${wrong[@]}")"
wait $trial || fail "the trial: $(cat /run/wq-tests/progress)"
note "$(jq -c '[.verdict, .pairs]' /run/wq-tests/trial) $(status | jq -c .daemon.experiments)"
check_eq "pairs dropped, windows lost" "0 0" "$(status | jq -r '.daemon.experiments | "\(.pairs_dropped) \(.windows_lost)"')"
systemctl stop wq-tuned
