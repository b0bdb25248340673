#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests that the BPF programs find all types and members that they read, on kernels that no test boots.
# Usage: btf_test.sh CLANG BPFTOOL OBJECT...
# bpftool resolves the relocations of an object against the types of a kernel, and writes the types and
# members that the relocations refer to.
set -euo pipefail
here=$(dirname "$0")
clang=$1 bpftool=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

found=""
resolve() { # OPTION-OF-CLANG OBJECT...
  "$clang" -target bpf -g "$1" -c "$here/btf/kernel.c" -o "$work/kernel.o"
  shift
  "$bpftool" gen min_core_btf "$work/kernel.o" "$work/used.btf" "$@"
  found=$("$bpftool" btf dump file "$work/used.btf")
}
has() { grep -qE "$1" <<<"$found" || { printf 'no relocation refers to: %s\n%s\n' "$1" "$found"; exit 1; }; }
has_not() { ! grep -qE "$1" <<<"$found" || { printf 'a relocation refers to: %s\n%s\n' "$1" "$found"; exit 1; }; }
common() {
  local member
  for member in pwqs list wq_dev name flags wq refcnt nr_in_flight pwqs_node stats current_pwq rescue_wq current_work func data \
    worker_private affn_scope task seq nr_pods pod_cpus pod_node \
    cpu node id nr_workers nr_idle attrs nice cpumask __pod_cpumask affn_strict idr_rt xa_head shift slots pool dfl_pwq \
    cpu_pwq rescuer pid comm cpus_ptr current_func current_at se sum_exec_runtime; do
    has "'$member' type_id=[0-9]+ bits_offset=[0-9]+"
  done
}

resolve -ULIKE_7_3 "$@"
common
has "'unbound_attrs'"
has "'saved_max_active'"
has_not "'WQ_UNBOUND'" # its enum has no name
has "'WQ_AFFN_NUMA' val=4$"
has_not "'WQ_AFFN_CACHE_SHARD'"

resolve -DLIKE_7_3 "$@"
common
has "'attrs'"
has "'max_active'"
has_not "'unbound_attrs'"
has "'WQ_UNBOUND' val=32$"
has "'__WQ_ORDERED' val=524288$"
has "'WQ_AFFN_DFL' val=5$"
has "'WQ_AFFN_CACHE_SHARD' val=3$"
has "'POOL_BH' val=8$"
has "'PWQ_STAT_STARTED' val=3$"
has "'PWQ_STAT_CPU_TIME' val=7$"
has "'WQ_MEM_RECLAIM' val=16$"
