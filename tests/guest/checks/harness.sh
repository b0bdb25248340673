# SPDX-License-Identifier: LGPL-2.1-or-later
# The functions that other checks depend on: the workqueue of a crypt device, a load on it, and the kernel's
# pods from the masks of its workers, for the two scopes whose pods are known from the topology files.
. lib.sh

crypt_c0
check_eq "strictness of a new workqueue" 0 "$(cat "$workqueues/$wq/affinity_strict")"
note "$wq: $(scope_of "$wq")"

siblings=$(cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list | sort -uV)
check_eq "pods of smt" "$siblings" "$(real_pods "$wq" smt)"
check_eq "pods of system" "$(cat /sys/devices/system/cpu/online)" "$(real_pods "$wq" system)"

mbs=$(load_mbs c0 2 2)
note "$mbs MB/s"
[ "$mbs" -gt 0 ] || fail "the load moved nothing"

crypt_close c0
wait_until 5 test ! -e "$workqueues/$wq" || fail "$wq is still there"
