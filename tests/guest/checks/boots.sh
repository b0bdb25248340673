# SPDX-License-Identifier: LGPL-2.1-or-later
# The guest has the requested kernel and topology, and no unit failed.
. lib.sh

systemctl is-system-running --wait >/dev/null || true
check_eq "failed units" "" "$(systemctl --failed --no-legend --plain)"
check_eq "kernel" "$guest_release" "$(uname -r)"

present=$(find /sys/devices/system/cpu -maxdepth 1 -name 'cpu[0-9]*' | wc -l)
check_eq "CPUs" "${guest_smp%%,*}" "$present"
case $guest_append in
  *nosmt*) check_eq "SMT" off "$(cat /sys/devices/system/cpu/smt/control)" ;;
  *maxcpus=6*) check_eq "CPUs online" 0-5 "$(cat /sys/devices/system/cpu/online)" ;;
  *)
    columns=$(lscpu -p=socket,core | grep -v '^#')
    sockets=$(cut -d, -f1 <<<"$columns" | sort -u | wc -l)
    cores=$(sort -u <<<"$columns" | wc -l)
    # QEMU counts cores per cluster.
    clusters=$(sed -nE 's/.*clusters=([0-9]+).*/\1/p' <<<"$guest_smp")
    per_cluster=$(sed -nE 's/.*cores=([0-9]+).*/\1/p' <<<"$guest_smp")
    want=$(sed -E "s/clusters=[0-9]+,//; s/cores=[0-9]+/cores=$((${clusters:-1} * per_cluster))/" <<<"$guest_smp")
    check_eq "topology" "$want" \
      "$present,sockets=$sockets,cores=$((cores / sockets)),threads=$((present / cores))"
    ;;
esac
