# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Functions for the checks that run inside a guest.
#
# Adding a check: write tests/guest/checks/NAME.sh, beginning with `. lib.sh` (the runner puts this folder into
# PATH), and name it after CHECKS in a guest_boot() of tests/guest/CMakeLists.txt. It runs as root
# under `set -euo pipefail` and passes if and only if it exits 0. A line `# timeout: 300`
# gives it more than the usual 180 seconds. CTest shows its output.
#
# When a check starts, wq-tuned is installed, stopped and without a policy in /etc, all CPUs that were online
# at boot are online, there is no crypt device, and every workqueue has the kernel's settings. After the check
# the runner restores this (runner.sh: service, /etc/wq-tuned, drop-ins of the unit, /run/wq-tuned,
# /var/lib/wq-tuned, crypt devices, CPUs). The check must undo every other change by a trap. If a scope or
# strictness still differs when the service is stopped, the check fails: "a setting left behind". (Crypt
# devices that the check did not close are still open then.)
#
# guest_kernel (6.12), guest_release, guest_smp and guest_append say which guest it is; guest_bare is yes in one without systemd.
set -euo pipefail
# shellcheck disable=SC2034
guest_kernel="" guest_release="" guest_smp="" guest_append="" guest_port="" guest_bare=""
# shellcheck disable=SC1091
. /usr/lib/wq-tests/guest.env
patience=$(sed -nE 's/.*wq_tests\.patience=([0-9]+).*/\1/p' <<<"$guest_append") # see runner.sh
workqueues=/sys/devices/virtual/workqueue

note() { printf '%s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*"; exit 1; }
trap 'printf "FAILED: line %s: %s\n" "$LINENO" "$BASH_COMMAND"' ERR

check_eq() { # WHAT EXPECTED ACTUAL
  if [ "$2" != "$3" ]; then
    printf 'FAILED: %s\n  expected: %s\n  actual:   %s\n' "$1" "$2" "$3"
    exit 1
  fi
  note "ok: $1"
}

# `wait_until SECONDS COMMAND...`: until the command succeeds; after that time, fails.
wait_until() {
  local limit=$(($1 * ${patience:-1})) end
  shift
  end=$((${EPOCHREALTIME/./} + limit * 1000000))
  until "$@"; do
    [ "${EPOCHREALTIME/./}" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# The daemon's status, as JSON; exit code 3 (not running) is not a failure here.
status() { wq-tunectl status --json || [ $? = 3 ]; }

# Prints the text of the file affinity_scope: `default (cache)`, or the name of a scope.
scope_of() { cat "$workqueues/$1/affinity_scope"; }

# `crypt_open NAME [N]`: makes /dev/mapper/NAME on RAM disk N (0 to 3).
crypt_open() {
  local key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  [ -e /dev/ram0 ] || modprobe brd rd_nr=4 rd_size=65536
  dmsetup create "$1" --table "0 131072 crypt aes-xts-plain64 $key$(rev <<<"$key") 0 /dev/ram${2:-0} 0"
}
crypt_close() { dmsetup remove --retry "$1"; }

# Closes c1 and c0, after `udevadm control --stop-exec-queue`: a disk can be removed only after udev has processed it.
crypt_close_both() {
  udevadm control --start-exec-queue
  udevadm settle
  crypt_close c1
  crypt_close c0
}

# The unbound workqueue of the crypt device NAME.
wq_of() {
  local number
  number=$(dmsetup info -c --noheadings --separator : -o major,minor "$1")
  basename "$(echo "$workqueues/kcryptd-$number-"*)"
}

# `crypt_c0`: makes the crypt device c0, and sets wq to its workqueue.
crypt_c0() { crypt_open c0; wq=$(wq_of c0); }

# `some_workqueue`: sets wq to a workqueue that a check may change: that of a crypt device, or `writeback` if
# there are no modules.
some_workqueue() {
  wq=writeback
  modprobe --dry-run --quiet dm-crypt || return 0
  crypt_c0
}
some_workqueue_done() { [ "$wq" = writeback ] || crypt_close c0; }

# `load_mbs NAME SECONDS JOBS`: writes to /dev/mapper/NAME; prints MB/s.
load_mbs() {
  rm -f /run/wq-tests/fio.json # `set -e` has no effect in $(...)
  fio --name=load --filename="/dev/mapper/$1" --rw=randwrite --bs=32k --iodepth=16 --ioengine=libaio \
    --direct=1 --time_based --runtime="$2" --numjobs="$3" --group_reporting \
    --output-format=json --output=/run/wq-tests/fio.json >/dev/null || fail "fio: exit code $?"
  jq -er '.jobs[0].write.bw_bytes / 1e6 | round' /run/wq-tests/fio.json
}

# `bring_out FILE`: sends FILE to the host in the output of the check; brought_out (common.sh) extracts it.
bring_out() { base64 -w 1000 "$1" | sed "s|^|@file ${1##*/} |"; }

no_jobs() { [ -z "$(systemctl list-jobs --no-legend)" ]; }
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

# `partition_made CPUS`: makes the isolated cpuset partition $cgroup of CPUS.
cgroup=/sys/fs/cgroup/rt
partition_made() {
  echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
  mkdir $cgroup
  echo "$1" >$cgroup/cpuset.cpus
  echo isolated >$cgroup/cpuset.cpus.partition
  check_eq "the partition" isolated "$(cat $cgroup/cpuset.cpus.partition)"
}
partition_removed() {
  echo member >$cgroup/cpuset.cpus.partition
  rmdir $cgroup
}

# Sends a command to QEMU's monitor: `host_monitor device_add ...`.
host_monitor() { echo "@monitor $*" >"$guest_port"; }

# Reads CPU lists, one per line, removes the offline CPUs, and prints each remaining list once.
online_of() {
  awk -v online="$(cat /sys/devices/system/cpu/online)" '
    function expand(list, set, parts, ends, n, i, cpu) {
      n = split(list, parts, ",")
      for (i = 1; i <= n; i++) {
        if (split(parts[i], ends, "-") == 1) ends[2] = ends[1]
        for (cpu = ends[1] + 0; cpu <= ends[2] + 0; cpu++) set[cpu] = 1
      }
    }
    BEGIN { expand(online, on) }
    {
      delete set
      expand($0, set)
      out = ""
      for (cpu = 0; cpu < 8192; cpu++) {
        if (!((cpu in set) && (cpu in on))) continue
        first = cpu
        while (((cpu + 1) in set) && ((cpu + 1) in on)) cpu++
        out = out (out == "" ? "" : ",") first (cpu > first ? "-" cpu : "")
      }
      if (out != "") print out
    }' | sort -uV
}

# Prints the CPU lists of the unbound workers, each once, without the offline CPUs. (Only some workers are
# also allowed on CPUs that were never online.)
worker_lists() {
  local dir comm
  for dir in /proc/[0-9]*; do
    comm=""
    read -r comm 2>/dev/null <"$dir/comm" || continue
    case $comm in kworker/u*) sed -n 's/^Cpus_allowed_list:\t//p' "$dir/status" 2>/dev/null || true ;; esac
  done | online_of
}
only_one_list() { [ "$(worker_lists | wc -l)" = 1 ]; }

# `real_pods WQ SCOPE`: prints the kernel's pods, one CPU list per line. It makes WQ strict and reads the CPU
# lists of its workers: every pool has at least one worker. Workers of all other workqueues, and the worker of
# WQ's default pool, are allowed on all CPUs. No other workqueue may be strict, and wq-tuned must not change
# WQ meanwhile.
real_pods() {
  local dir=$workqueues/$1 scope strict everywhere lists
  wait_until 15 only_one_list || fail "some workers were bound before real_pods began: $(worker_lists | tr '\n' ' ')"
  everywhere=$(worker_lists)
  read -r scope _ <"$dir/affinity_scope"
  read -r strict <"$dir/affinity_strict"
  echo "$2" >"$dir/affinity_scope" || fail "$1 does not take $2"
  echo 1 >"$dir/affinity_strict" || fail "$1 does not take strictness"
  sleep 0.5 # the pools of the step between (new scope, not yet strict) are released
  lists=$(worker_lists | grep -vxF "$everywhere" || true)
  printf '%s\n' "${lists:-$everywhere}"
  echo "$strict" >"$dir/affinity_strict"
  [ "$(cut -d' ' -f1 "$dir/affinity_scope")" = "$scope" ] || echo "$scope" >"$dir/affinity_scope"
  wait_until 15 only_one_list || fail "strict workers of $1 outlived real_pods: $(worker_lists | tr '\n' ' ')"
}

# `check_pods WQ`: for every scope, the pods that `explain` shows for WQ's candidates are the kernel's pods.
check_pods() {
  local explained scope scopes said
  explained=$(wq-tunectl explain "$1" --json)
  scopes=$(wq-tunectl plan --json | jq -er '.kernel.scopes[]')
  for scope in $scopes; do
    said=$(jq -r --arg s "$scope" '.candidates[] | select(.same | index($s)) | .pods[]' <<<"$explained" | sort -uV)
    [ -n "$said" ] || fail "explain has no pods for $scope"
    check_eq "pods of $scope" "$(real_pods "$1" "$scope")" "$said"
  done
}

# ---- wq-tuned itself

# `policy <<EOF`: writes /etc/wq-tuned/wq-tuned.toml. `apply_policy` writes the policy of most checks: kcryptd
# gets its scope at once, and nothing is compared.
policy() { mkdir -p /etc/wq-tuned && cat >/etc/wq-tuned/wq-tuned.toml; }
apply_policy() { # [SCOPE [MATCH]]
  policy <<EOF
default_scope.manage = false
judge.settle = "1d"
[[workqueue]]
match = "${2:-kcryptd-*}"
scope = "${1:-plan}"
EOF
}

# `target NAME KEY`: one field of one target's status.
target() { status | jq -r --arg name "$1" --arg key "$2" '.targets[] | select(.name == $name) | .[$key]'; }
daemon_field() { status | jq -r --arg key "$1" '.daemon[$key]'; }
has_target() { [ -n "$(target "$1" name)" ]; }
in_place() { scope_is "$wq" "${other:?}"; } # the candidate
scope_is() { [ "$(cut -d' ' -f1 "$workqueues/$1/affinity_scope" 2>/dev/null)" = "$2" ]; }
state_is() { [ "$(target "$1" state)" = "$2" ]; }
is_active() { systemctl is-active --quiet wq-tuned; }

# `expect_scope WQ WORD`: fails unless the first word of affinity_scope becomes WORD within five seconds.
expect_scope() {
  wait_until 5 scope_is "$1" "$2" || fail "$1 holds '$(scope_of "$1")', not '$2'"
  note "ok: $1 holds '$2'"
}

# `start_to WQ WORD`: starts wq-tuned, which sets WQ to WORD.
start_to() { systemctl start wq-tuned || fail "wq-tuned does not start"; expect_scope "$@"; }

# Prints a scope that has other pods than the default: `system` on one-CPU sockets, `smt` on all other
# topologies.
other_scope() {
  case $guest_smp in 8,sockets=8,*) echo system ;; *) echo smt ;; esac
}

# Adds settings to UNIT for this check; the runner removes them.
drop_in() { # UNIT <<EOF
  mkdir -p "/run/systemd/system/$1.d"
  cat >"/run/systemd/system/$1.d/check.conf"
  systemctl daemon-reload
}

no_drop_in() {
  rm -r /run/systemd/system/wq-tuned.service.d
  systemctl daemon-reload
  systemctl reset-failed wq-tuned 2>/dev/null || true
}

entries() { if [ -e /run/wq-tuned/owned.json ]; then jq '.entries | length' /run/wq-tuned/owned.json; else echo 0; fi; }

# The files that `wq-tunectl ab` or `bench` has to put back, and their guardians.
guardians() { pgrep -xc wq-ab-guardian || true; }
no_guardians() { [ "$(guardians)" = 0 ]; }
left_files() { jq '[.entries[] | select(.file != "device" and .file != "command")] | length' /run/wq-tuned/lab.json 2>/dev/null || echo 0; }

# `since_mark`: prints what the units logged since `mark`.
# (By time, because --after-cursor with a filter loses the first matching line before systemd 255.)
mark() { journalctl --sync; marked=@$EPOCHREALTIME; }
since_mark() { journalctl --sync; journalctl -u wq-tuned -u wq-tuned-restore -o cat --since="$marked"; }

# ---- comparisons

# `[window=3s] [washout=2s] [tick=20] [rule=LINE] trial_policy SCOPE [LINE...]`: writes a policy that compares
# only kcryptd, from the start of the daemon on; LINEs go into [judge]. SCOPE `auto:NAME`: NAME is the only
# candidate.
trial_policy() {
  local scope=${1%:*} candidates=""
  [[ $1 != auto:* ]] || candidates="candidates = [\"${1#auto:}\"]"
  shift
  policy <<EOF
[judge]
window = "${window:-1s}"
washout = "${washout:-200ms}"
min_items = 50
jitter = "0s"
settle = "0s"
$(printf '%s\n' "$@")
[[workqueue]]
match = "kcryptd-*"
scope = "$scope"
$candidates
${rule:-}
[default_scope]
manage = false
EOF
  wq-tunectl check >/dev/null || fail "the policy of this check"
  # A tick every three seconds (or TICK), and no watchdog: an emulator under load takes long to load BPF.
  drop_in wq-tuned.service <<EOF
[Service]
WatchdogSec=0
Environment=WATCHDOG_USEC=$((2 * ${tick:-3}))000000
EOF
}

# `cost_of SCOPE VALUE`: keeps the file $cost, for `counters = ["file:$cost"]`, until cost_of_nothing: VALUE, or what a
# check has put into the file $under, while $wq has SCOPE; else some 100. So it is known which scope
# is better, whatever this machine does. (A measured gain of an emulated guest depends on the host's other load.)
cost=/run/wq-tests/cost under=/run/wq-tests/under
cost_of() {
  mkfifo /run/wq-tests/never
  echo 100 >$cost
  echo "$2" >$under
  follow_cost "$1" &
  follower=$!
}
follow_cost() {
  local word value
  while :; do
    read -r word _ <"$workqueues/$wq/affinity_scope"
    read -r value <$under || continue # empty while a check writes it
    if [ "$word" = "$1" ]; then echo "$value"; else echo "10$((RANDOM % 10))"; fi 1<>$cost
    read -rt 0.02 _ || true
  done <>/run/wq-tests/never
}
cost_of_nothing() {
  kill "$follower" 2>/dev/null || true
  rm -f /run/wq-tests/never
}

# `load_on NAME [JOBS [OPTION...]]`: writes to /dev/mapper/NAME until load_off. OPTIONs are fio's.
load_on() {
  fio --name=load --filename="/dev/mapper/$1" --rw=randwrite --bs=32k --iodepth=16 --ioengine=libaio \
    --direct=1 --time_based --runtime=3600 --numjobs="${2:-2}" "${@:3}" >/dev/null 2>&1 &
  load=$!
}
load_off() {
  kill "$load" 2>/dev/null || true
  wait "$load" 2>/dev/null || true
}
load_c0() { load_on c0 "${writers:-2}"; trap load_off EXIT; } # until the check ends

verdicts=/var/lib/wq-tuned/verdicts.log
ledger=/var/lib/wq-tuned/ledger.json
# `verdict KEY`: prints KEY of the last verdict, or nothing if there is no verdict.
verdict() { jq -rs --arg key "$1" '.[-1][$key] // empty' $verdicts 2>/dev/null || true; }
ended() { [ "$(cat $verdicts 2>/dev/null | wc -l)" -ge "$1" ]; } # N verdicts
# Prints the number of pairs of all comparisons in the ledger on disk; 0 without a ledger.
ledger_pairs() { jq '[.entries[].columns[0].pairs] | add // 0' $ledger 2>/dev/null || echo 0; }
# The same of those that a kill does not lose: the entries in /run are newer than those in the ledger.
known_pairs() {
  local newer=/run/wq-tuned/pairs.json
  local files=("$newer")
  [ ! -e "$ledger" ] || files+=("$ledger")
  [ -e $newer ] || { ledger_pairs; return; }
  jq -s '[(.[0].ledger.entries, .[1].entries // []) | .[]] | unique_by(.key) | [.[].columns[0].pairs] | add // 0' "${files[@]}"
}
trial_of() { status | jq -r --arg name "$1" --arg key "$2" '.targets[] | select(.name == $name) | .comparison[$key] // empty'; }
# `has_pairs WQ N`: whether the comparison of WQ has at least N pairs.
has_pairs() { [ "$(trial_of "$1" pairs)" -ge "$2" ] 2>/dev/null; }
# Prints the number of wq-tuned's BPF programs in the kernel.
probes() { /usr/lib/wq-tests/count-work --loaded | jq length; }
no_probes() { [ "$(probes)" = 0 ]; }
# The kernel frees programs with a delay.
expect_no_probes() { wait_until 20 no_probes || fail "programs of ours in the kernel: $(/usr/lib/wq-tests/count-work --loaded)"; note "ok: no probe is left"; }
# Whether kworkers are watched, as `top --functions` and `diagnose` do.
watches_ticks() { /usr/lib/wq-tests/count-work --loaded | jq -e 'has("wqt_top_tick")' >/dev/null; }
