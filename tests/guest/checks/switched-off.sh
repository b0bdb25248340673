# SPDX-License-Identifier: LGPL-2.1-or-later
# wq_tuned=off on the kernel command line: the daemon observes, whatever a policy says.
. lib.sh

crypt_c0
apply_policy "$(other_scope)"
systemctl start wq-tuned
check_eq "state" paused "$(daemon_field state)"
check_eq "writes" 0 "$(daemon_field writes)"
scope_is "$wq" default || fail "it holds $(scope_of "$wq")"
wq-tunectl pin "$wq" smt 2>/dev/null && fail "pin was taken"
check_eq "scope" default "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope")"
