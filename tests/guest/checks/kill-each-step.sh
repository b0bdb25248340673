# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# kill -9 at each write, fsync and rename of applying in turn, sent by strace from outside. After each: the
# baseline, to the last file, and no entry.
# timeout: 600
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh

crypt_open c0
crypt_open c1 1
apply_policy "$(other_scope)"
a=$(wq_of c0)
b=$(wq_of c1)
settings() { grep -H . "$workqueues"/*/affinity_{scope,strict} /sys/module/workqueue/parameters/default_affinity_scope; }
before=$(settings)

n=0 ends=0
while :; do
  n=$((n + 1))
  [ $n -lt 60 ] || fail "no end: still killed at step $n"
  # strace is the main process: it must see and signal its child, which the sandbox forbids.
  drop_in wq-tuned.service <<EOF
[Service]
Restart=no
NotifyAccess=all
ProtectProc=default
CapabilityBoundingSet=CAP_SYS_PTRACE
SystemCallFilter=
ExecStart=
ExecStart=/usr/bin/strace -f -o /run/wq-tuned/strace -e trace=write,fsync,rename -e inject=write,fsync,rename:signal=KILL:when=$n /usr/sbin/wq-tuned
EOF
  systemctl reset-failed wq-tuned 2>/dev/null || true
  systemctl start wq-tuned 2>/dev/null || true
  sleep 0.3
  if is_active; then
    # It came through: fewer steps than n. That it had done its work by then is what the loop rests on.
    for wq in "$a" "$b"; do scope_is "$wq" "$(other_scope)" || fail "active, but $wq holds $(scope_of "$wq")"; done
    systemctl stop wq-tuned
    break
  fi
  grep -q "killed by SIGKILL" /run/wq-tuned/strace || fail "step $n: not killed: $(tail -3 /run/wq-tuned/strace)"
  note "step $n: killed at $(grep -aE 'write|fsync|rename' /run/wq-tuned/strace | tail -1 | cut -c1-100)"
  ends=$((ends + 1))
  check_eq "step $n: all settings" "$before" "$(settings)"
  check_eq "step $n: entries" 0 "$(entries)"
done
[ $ends -ge 5 ] || fail "only $ends steps: that cannot be all of applying"
check_eq "after a whole run" "$before" "$(settings)"
