# SPDX-License-Identifier: LGPL-2.1-or-later
# CPUs are online that were offline or isolated at boot, and the pods cannot be read from the kernel: they
# cannot be derived either, so the daemon writes nothing.
. lib.sh

restrict=$(cat /proc/sys/kernel/kptr_restrict)
trap 'sysctl -q kernel.kptr_restrict="$restrict"' EXIT
sysctl -q kernel.kptr_restrict=2
why=$(wq-tunectl topology --json | jq -r .pods.why)
note "why they are not read: $why"
grep -q kptr_restrict <<<"$why" || fail "it does not say what to change"

# The daemon's first start sees which CPUs are usable; the others come online later.
systemctl start wq-tuned
systemctl stop wq-tuned
[ "$(cat /sys/devices/system/cpu/smt/control)" != off ] || echo on >/sys/devices/system/cpu/smt/control
came=()
for cpu in /sys/devices/system/cpu/cpu[0-9]*/online; do
  [ "$(cat "$cpu")" = 1 ] || { echo 1 >"$cpu"; came+=("$cpu"); }
done
sleep 2

crypt_c0
apply_policy "$(other_scope)"
systemctl start wq-tuned
check_eq "state" leave "$(target "$wq" state)"
target "$wq" reason | grep -q '^pods unknown: ' || fail "reason: $(target "$wq" reason)"
note "reason: $(target "$wq" reason)"
check_eq "writes" 0 "$(daemon_field writes)"
wq-tunectl plan --json | jq -e --arg wq "$wq" 'any(.targets[]; .name == $wq) and all(.targets[]; .action | IN("none", "skip"))' >/dev/null || fail "plan would write"
wq-tunectl pin "$wq" smt 2>/run/wq-tests/err && fail "pin was taken"
grep -q "pods unknown" /run/wq-tests/err || fail "pin says: $(cat /run/wq-tests/err)"
systemctl stop wq-tuned
for cpu in "${came[@]}"; do echo 0 >"$cpu"; done
