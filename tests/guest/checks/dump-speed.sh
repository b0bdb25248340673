# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 1500
# `wq-tunectl dump` compared with the kernel tree's wq_dump.py, from the disk that tests/bench/dump.sh made:
# the same pools, in less than a twentieth of the time.
. lib.sh
root=/run/drgn out=/run/wq-tests/dump.json text=/run/wq-tests/wq_dump.txt

modprobe nvme
wait_until 10 test -b /dev/nvme0n1 || fail "no disk: run tests/bench/dump.sh"
mkdir -p $root
mount -t tmpfs -o size=1400m none $root
tar -xf /dev/nvme0n1 -C $root
mount --rbind /proc $root/proc
mount --rbind /sys $root/sys
tidy() { umount -R -l $root; }
trap tidy EXIT

median() { sort -n | sed -n "$((($1 + 1) / 2))p"; }
# Prints the median wall time of N runs in milliseconds, after one run that warms the caches.
timed() { # N COMMAND...
  local n=$1 i start
  shift
  "$@"
  for ((i = 0; i < n; i++)); do
    start=${EPOCHREALTIME/./}
    "$@"
    echo $(((${EPOCHREALTIME/./} - start) / 1000))
  done | median "$n"
}
ours() { wq-tunectl dump --json >$out; }
theirs() { chroot $root /usr/bin/drgn /wq_dump.py >$text; }
mine=$(timed 5 ours)
peer=$(timed 3 theirs)
check_eq "pools: id, ref, nice, of theirs and ours" \
  "$(sed -nE 's/^pool\[0*([0-9]+)\] flags=0x[0-9a-f]+ ref= *([0-9]+) nice= *(-?[0-9]+) .*/\1 \2 \3/p' $text)" \
  "$(jq -r '.pools[] | "\(.id) \(.ref) \(.nice)"' $out)"
check_eq "pods, by scope" "$(sed -nE 's/^  nr_pods +//p' $text | tr '\n' ' ')" \
  "$(jq -r '.scopes[] | select(.scope != "cache_shard") | .nr_pods' $out | tr '\n' ' ')"
note "on $(nproc) CPUs, $(jq '.workqueues | length' $out) workqueues: dump $mine ms, wq_dump.py $peer ms: 1 in $((peer / mine))"
[ $((mine * 20)) -lt "$peer" ] || fail "not less than a twentieth"
