# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Inside the guest: runs the checks of /usr/lib/wq-tests/todo one after the other and
# tells the host over the second serial port, a line at a time:
#   @timer CPU    @ready    @begin NAME    | what the check prints    @end NAME EXITCODE SECONDS    @done
# After each check it restores the state of the guest at boot. If a workqueue setting still differs, the check
# fails, because it left the setting behind.
set -uo pipefail
here=/usr/lib/wq-tests
workqueues=/sys/devices/virtual/workqueue

guest_port=""
# shellcheck disable=SC1091
. $here/guest.env
exec 3>"$guest_port"
stty -F "$guest_port" raw -echo

# Prints every setting that a check can leave behind, one per line.
settings() {
  grep -H . /sys/module/workqueue/parameters/default_affinity_scope $workqueues/cpumask "$workqueues"/*/{affinity_scope,affinity_strict,cpumask} 2>/dev/null
}

put_back_cpus() {
  local cpu
  [ "$(cat /sys/devices/system/cpu/smt/control)" = "$smt_at_boot" ] ||
    echo "$smt_at_boot" >/sys/devices/system/cpu/smt/control
  for cpu in $online_at_boot; do
    # CPU 0 has no such file
    [ "$(cat "$cpu/online" 2>/dev/null || echo 1)" = 1 ] || echo 1 >"$cpu/online"
  done
}

stop_daemon() {
  systemctl disable --quiet wq-tuned.service 2>/dev/null
  systemctl stop wq-tuned.service wq-tuned-restore.service 2>/dev/null
}

reset() {
  local name
  systemctl reset-failed
  rm -rf /etc/wq-tuned /run/wq-tuned /var/lib/wq-tuned
  if compgen -G '/etc/systemd/system/wq-tuned*.d' || compgen -G '/run/systemd/system/wq-tuned*.d'; then
    rm -rf /{etc,run}/systemd/system/wq-tuned*.d
    systemctl daemon-reload
  fi
  dmsetup ls --target crypt 2>/dev/null | awk '/\t/ {print $1}' | while read -r name; do
    dmsetup remove --retry "$name"
  done
  put_back_cpus
}

# Prints settings that a check left behind. A workqueue that existed at boot must have the same settings, even if it
# has the default now; another one must have the kernel's defaults.
left_behind() {
  settings | awk '
    { value = file = $0; sub(/.*:/, "", value); sub(/:[^:]*$/, "", file) } # names can have colons
    NR == FNR { before[file] = value; if (file ~ "/writeback/cpumask$") mask = value; next }
    file in before ? value != before[file] : value != "0" && value !~ /^default \(/ && value != mask' /run/wq-tests/settings -
}

force_back() {
  local line file value
  while IFS= read -r line; do
    file=${line%:*} value=${line##*:}
    [ "$(cat "$file" 2>/dev/null)" = "$value" ] || echo "${value%% *}" >"$file"
  done </run/wq-tests/settings 2>/dev/null
}

run_check() { # NAME
  local name=$1 limit pid rc began left output=/run/wq-tests/$1.out
  limit=$(sed -nE 's/^# timeout: ([0-9]+)$/\1/p' "$here/checks/$name.sh")
  limit=$((${limit:-180} * patience))
  echo "@begin $name" >&3
  began=$EPOCHREALTIME
  : >"$output"
  # It has its own process group, so that processes that it leaves behind can be killed. Its output goes
  # through a file, because a pipe would stay open as long as a daemon that the check started.
  set -m
  PATH=$PATH:$here timeout --kill-after=5 "$limit" bash "$here/checks/$name.sh" </dev/null >"$output" 2>&1 3>&- &
  pid=$!
  set +m
  tail -n +1 -f -s 0.2 --pid="$pid" "$output" | sed -u 's/^/| /' >&3
  wait "$pid"
  rc=$?
  [ -z "$(tail -c 1 "$output")" ] || echo >&3 # the last line has no newline
  kill -KILL -- "-$pid" 2>/dev/null
  [ $rc != 124 ] || echo "| timed out after $limit s" >&3
  if [ $rc != 0 ]; then
    { systemctl status wq-tuned --no-pager -n 0; journalctl -u wq-tuned -u wq-tuned-restore --no-pager -o short-monotonic \
      --since "@${began%.*}" | tail -n 60; } 2>&1 | sed 's/^/| journal: /' >&3
  fi
  stop_daemon >/dev/null 2>&1
  left=$(left_behind) # also of crypt devices, which reset removes
  reset >/dev/null 2>&1
  left=$(printf '%s\n' "$left" "$(left_behind)" | grep . | sort -u)
  if [ -n "$left" ]; then
    printf '%s\n' "$left" | sed 's/^/| a setting left behind: /' >&3
    [ $rc != 0 ] || rc=99
    force_back
  fi
  echo "@end $name $rc $(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')" >&3
}

mkdir -p /run/wq-tests
online_at_boot=$(for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
  [ "$(cat "$cpu/online" 2>/dev/null || echo 1)" = 0 ] || echo "$cpu"
done)
smt_at_boot=$(cat /sys/devices/system/cpu/smt/control)
settings >/run/wq-tests/settings

# On a CPU with a dead timer, a process that sleeps never wakes up. Detect this before the first check.
probes=() dead=""
word() { sed -nE "s/.*wq_tests\.$1=([0-9]+).*/\1/p" /proc/cmdline; }
# wq_tests.patience=N: multiplies the time limits by N, for a slow build
patience=$(word patience)
patience=${patience:-1}
[ "$(word machine)" -gt "$(($(word dead_timers)))" ] || dead=/sys/devices/system/cpu/cpu1
# wq_tests.int3=N: in the first N machines of a boot, the kernel seems to die of a breakpoint
if [ "$(word machine)" -le "$(($(word int3)))" ]; then
  echo "Oops: int3: 0000, of wq_tests" >/dev/console
  systemctl poweroff --force --force
fi
# wq_tests.abort=N: in the first N machines of a boot, QEMU dies by a signal
if [ "$(word machine)" -le "$(($(word abort)))" ]; then
  echo "@abort" >&3
  sleep infinity
fi
for cpu in $online_at_boot; do
  # wq_tests.dead_timers=N: in the first N machines of a boot, the timer of CPU 1 seems to be dead
  { taskset -c "${cpu##*/cpu}" sleep 0.02 && { [ "$cpu" != "$dead" ] || sleep infinity; } && echo "@timer ${cpu##*/cpu}" >&3; } &
  probes+=($!)
done
wait "${probes[@]}"

echo "@ready" >&3
while read -r name <&9; do run_check "$name"; done 9<$here/todo
# A quiet console does not show the kernel's warnings; boot.sh checks them.
dmesg --level=emerg,alert,crit,err,warn 2>/dev/null | sed 's/^/@warn /' >&3
echo "@done" >&3
# The port's last bytes must be out before the machine is off.
sync "$guest_port" 2>/dev/null
sleep 0.5
systemctl poweroff --force --force
