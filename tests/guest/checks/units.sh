# SPDX-License-Identifier: LGPL-2.1-or-later
# The installed units: systemd-analyze has no complaints, the sandbox is tight, the log is short, and the
# daemon also runs if there is nothing to tune.
. lib.sh

# The guest has no man program; the build makes sure that the pages exist.
complaints=$(systemd-analyze verify --man=no /usr/lib/systemd/system/wq-tuned*.service 2>&1 || true)
check_eq "systemd-analyze verify" "" "$complaints"
score=$(systemd-analyze security --offline=true --no-pager /usr/lib/systemd/system/wq-tuned.service | sed -nE 's/.*exposure level.*: ([0-9.]+) .*/\1/p')
note "exposure: $score"
awk -v s="$score" 'BEGIN {exit !(s != "" && s <= 1.4)}' || fail "exposure $score is above 1.4"

note "-- nothing to tune"
policy <<<'default_scope.manage = false'
systemctl start wq-tuned
check_eq "state" running "$(daemon_field state)"
check_eq "writes" 0 "$(daemon_field writes)"
lines() { journalctl --sync; journalctl -u wq-tuned -o json _SYSTEMD_INVOCATION_ID="$(systemctl show -P InvocationID wq-tuned)" | wc -l; }
first=$(lines)
for _ in 1 2 3 4 5 6; do echo 0 >/sys/devices/system/cpu/cpu1/online; echo 1 >/sys/devices/system/cpu/cpu1/online; done
sleep 2
check_eq "journal lines after six rounds of hotplug" "$first" "$(lines)"
systemctl show -P StatusText wq-tuned
systemctl reload wq-tuned
more_lines() { [ "$(lines)" -gt "$first" ]; }
wait_until 10 more_lines || fail "a reload adds no line: these are not its lines"
note "-- the kernel's pods are known to a daemon that may not see its addresses"
check_eq "where they are from" kernel "$(status | jq -r .kernel.pods.source)"
check_eq "CAP_SYSLOG" 0 $((0x$(awk '$1 == "CapBnd:" {print $2}' "/proc/$(systemctl show -P MainPID wq-tuned)/status") >> 34 & 1))

note "-- bounds, of which little is used"
for key in MemoryMax TasksMax; do
  [ "$(systemctl show -P $key wq-tuned)" != infinity ] || fail "$key is not set"
done
cgroup=/sys/fs/cgroup$(systemctl show -P ControlGroup wq-tuned)
note "figures: the cgroup's memory.peak $(($(cat "$cgroup/memory.peak") / 1024)) kB"
[ "$(cat "$cgroup/memory.peak")" -lt $(($(cat "$cgroup/memory.max") / 4)) ] || fail "more than a quarter of MemoryMax="
systemctl stop wq-tuned
check_eq "result" success "$(systemctl show -P Result wq-tuned)"

note "-- a kernel without affinity scopes (a fake tree)"
root=$(mktemp -d)
mkdir -p "$root"/{proc,etc,run,sys/devices/virtual/workqueue/writeback,sys/devices/system}
cp -r /sys/devices/system/cpu "$root/sys/devices/system/" 2>/dev/null || true
echo ff >"$root/sys/devices/virtual/workqueue/cpumask"
echo 0 >"$root/sys/devices/virtual/workqueue/writeback/per_cpu"
wq-tuned --root "$root" 2>"$root/log" &
sleep 2
kill -TERM %1
wait %1 || fail "exit code $?: $(cat "$root/log")"
[ "$(wc -l <"$root/log")" -le 2 ] || fail "not quiet: $(cat "$root/log")"
