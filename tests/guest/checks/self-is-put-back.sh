# SPDX-License-Identifier: LGPL-2.1-or-later
# After the previous checks, the guest must be in the state that it had at boot.
. lib.sh
check_eq "scope of writeback" "default (cache)" "$(scope_of writeback)"
check_eq "CPUs online" 0-7 "$(cat /sys/devices/system/cpu/online)"
[ ! -e /etc/wq-tuned ] || fail "/etc/wq-tuned is still there"
check_eq "drop-ins" "" "$(systemctl show -P DropInPaths wq-tuned)"
[ ! -e /dev/mapper/c0 ] || fail "c0 is still there"
check_eq "processes left running" "" "$(pgrep -af 'sleep 4321' || true)"
