#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The device tree of QEMU's virt machine, with caches: name-caches.sh OUTPUT.dtb CPUS L2 L3 QEMU WORD...
# One L2 per L2 CPUs and one L3 per L3 CPUs, 0 for none. QEMU and WORDs: as for the boot that uses the tree.
set -euo pipefail
output=$1 cpus=$2 l2=$3 l3=$4 qemu=$5
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first_l2=$((0x9000)) first_l3=$((0x9800)) # phandles that QEMU does not use

"$qemu" "$@" -machine "dumpdtb=$work/plain.dtb" -display none -nic none -serial null -serial null -monitor none >/dev/null
dtc -q -I dtb -O dts -o "$work/caches.dts" "$work/plain.dtb"
# With a wrong name dtc would add a new node, which the kernel ignores.
for ((cpu = 0; cpu < cpus; cpu++)); do grep -q "cpu@$cpu {" "$work/caches.dts" || { echo "no CPU $cpu in the tree"; exit 1; }; done

cache_node() { # LEVEL NUMBER SIZE HANDLE [NEXT]
  printf '%s\n' "l$1-cache$2 { compatible = \"cache\"; cache-level = <$1>; cache-unified; cache-size = <$3>;" \
    "cache-line-size = <64>; cache-sets = <1024>; ${5:+next-level-cache = <$5>;} phandle = <$4>; };"
}
# dtc merges a node that occurs again into the first one.
{
  echo '/ { cpus {'
  for ((cpu = 0; cpu < cpus; cpu++)); do
    if [ "$l2" != 0 ]; then next=$((first_l2 + cpu / l2)); else next=$((first_l3 + cpu / l3)); fi
    printf 'cpu@%d { next-level-cache = <%d>; ' $cpu $next
    for kind in d i; do printf '%s-cache-size = <0x10000>; %s-cache-line-size = <64>; %s-cache-sets = <256>; ' $kind $kind $kind; done
    echo '};'
  done
  [ "$l2" = 0 ] || for ((i = 0; i * l2 < cpus; i++)); do
    cache_node 2 $i 0x100000 $((first_l2 + i)) "$([ "$l3" = 0 ] || echo $((first_l3 + i * l2 / l3)))"
  done
  [ "$l3" = 0 ] || for ((i = 0; i * l3 < cpus; i++)); do cache_node 3 $i 0x2000000 $((first_l3 + i)); done
  echo '}; };'
} >>"$work/caches.dts"
dtc -q -I dts -O dtb -o "$output" "$work/caches.dts"
