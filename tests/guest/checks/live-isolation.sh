# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 300
# A cpuset partition isolates CPUs while the daemon runs: the kernel removes them from the mask of unbound
# workqueues, and the plans follow, the daemon's at its next tick. When the partition is removed, everything
# is as before.
. lib.sh
cpus=/sys/devices/system/cpu
put_back() { rmdir $cgroup 2>/dev/null || true; }
trap put_back EXIT

files() { # prints the kernel's files, for the log
  note "unbound: $(cat $workqueues/cpumask), isolated of it: $(cat $workqueues/cpumask_isolated), cpu/isolated: '$(cat $cpus/isolated)'"
}
planned() { wq-tunectl plan --json | jq -cS '.targets[] | select(.name == "writeback") | [.planned, .action, .candidates]'; }
cpus_of() { wq-tunectl explain writeback | awk '$1 == "CPUs" {print $2}'; }
# Cores of the largest pool in the plan: all cores that the mask leaves.
cores() { wq-tunectl plan --json | jq '[.targets[] | select(.name == "writeback") | .candidates[].cores_per_pool[1]] | max'; }
# Cores of the largest pools in the daemon's reason: "pools of 6 cores".
daemon_cores() { status | jq -r '.targets[] | select(.name == "writeback") | .reason' | grep -oE '[0-9]+ cores' | head -n 1; }

files
! wq-tunectl status | grep -q '^ISOLATED BY' || fail "isolated CPUs out of nowhere"
nproc=$(nproc)
all=$(cpus_of)
before=$(planned)
note "before: CPUs $all, $before"
systemctl start wq-tuned
had=$(daemon_cores)
note "the daemon: $had"

note "-- CPUs 2 and 3 are isolated"
partition_made 2-3
files
check_eq "diagnose watches them" 2-3 "$(wq-tunectl diagnose --seconds 1 --json | jq -r .isolated.cpus)"
check_eq "plan, CPUs" "0-1,4-$((nproc - 1))" "$(cpus_of)"
check_eq "plan, cores" $((nproc - 2)) "$(cores)"
note "now: $(planned)"
check_eq "users other than root are told the same" "$(planned)" \
  "$(as_nobody wq-tunectl plan --json | jq -cS '.targets[] | select(.name == "writeback") | [.planned, .action, .candidates]')"
# Nothing tells the daemon before its next tick, 15 s later at most.
follows() { [ "$(daemon_cores)" = "$1" ]; }
wait_until 20 follows "$((nproc - 2)) cores" || fail "the daemon still says: $(daemon_cores)"
note "ok: the daemon: $(daemon_cores)"

note "-- and no longer"
partition_removed
files
check_eq "plan, CPUs" "$all" "$(cpus_of)"
check_eq "plan" "$before" "$(planned)"
wait_until 20 follows "$had" || fail "the daemon still says: $(daemon_cores)"
note "ok: the daemon: $(daemon_cores)"
systemctl stop wq-tuned
