# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The bus: all may read, root may order, and no call starts what was stopped.
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh

as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
crypt_open c0
wq=$(wq_of c0)
apply_policy leave
systemctl enable --quiet wq-tuned

note "-- stopped"
code=0
wq-tunectl status --json >/run/wq-tests/out || code=$?
check_eq "exit code of status" 3 $code
check_eq "daemon" absent "$(jq -r .daemon.state /run/wq-tests/out)"
check_eq "what the kernel has" "default" "$(jq -r --arg n "$wq" '.targets[] | select(.name == $n) | .scope' /run/wq-tests/out)"
code=0
wq-tunectl pin "$wq" smt 2>/dev/null || code=$?
check_eq "exit code of pin" 3 $code
busctl --system call org.wqtuned1 /org/wqtuned1 org.wqtuned1.Manager GetStatus >/dev/null 2>&1 && fail "somebody answered"
! is_active || fail "a call started the daemon"

note "-- running"
systemctl start wq-tuned
as_nobody wq-tunectl status --json | jq -e '.daemon.state == "running"' >/dev/null
as_nobody wq-tunectl status >/dev/null
for order in "pin $wq smt" "unpin $wq" "revert" "reload"; do
  code=0
  # shellcheck disable=SC2086
  as_nobody wq-tunectl $order 2>/run/wq-tests/err || code=$?
  check_eq "nobody: $order" 1 $code
done
scope_is "$wq" default || fail "nobody's pin was carried out"

wq-tunectl pin "$wq" smt
check_eq "pinned" smt "$(scope_of "$wq")"
check_eq "state" pinned "$(target "$wq" state)"
wq-tunectl pin "$wq" cpu
check_eq "pinned elsewhere" cpu "$(scope_of "$wq")"
systemctl restart wq-tuned
check_eq "a pin survives a restart" "cpu pinned default" "$(scope_of "$wq") $(target "$wq" state) $(target "$wq" baseline)"
wq-tunectl revert "$wq"
check_eq "reverted" "default reverted" "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope") $(target "$wq" state)"
wq-tunectl unpin "$wq"
check_eq "unpinned" leave "$(target "$wq" state)"
wq-tunectl pin @default smt
check_eq "@default pinned" smt "$(cat /sys/module/workqueue/parameters/default_affinity_scope)"
check_eq "its followers" "default (smt)" "$(scope_of "$wq")"
for bad in "pin nothing smt" "pin $wq cach" "pin $wq default" "unpin $wq"; do
  code=0
  # shellcheck disable=SC2086
  wq-tunectl $bad 2>/run/wq-tests/err || code=$?
  check_eq "$bad" 1 $code
  note "   $(cat /run/wq-tests/err)"
done
busctl --system introspect org.wqtuned1 /org/wqtuned1 >/dev/null
systemctl stop wq-tuned
scope_is "$wq" default || fail "after stop it holds $(scope_of "$wq")"
