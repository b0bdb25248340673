#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Six fio engines on an NFS export of a tmpfs over loopback, 512 bytes at a time, as on the Grace and the EPYC
# of the cache_shard series: ab-nfs.sh FINE, where FINE is the scope to compare with the current one. The
# workqueues of NFS (rpciod, xprtiod, nfsiod) are not in sysfs, so the target is @default. Mounts, exports and
# unmounts by itself, as root.
set -euo pipefail
# shellcheck source=tests/bench/ab-common.sh
. "$(dirname "$0")/ab-common.sh"
fine=$1
grace=""
base=$(mktemp -d /run/wq-ab-nfs.XXXXXX)

down() {
  umount -f "$base/client" 2>/dev/null || true
  [ -z "${exported:-}" ] || exportfs -u "127.0.0.1:$base/server" || true
  [ -z "${served:-}" ] || rpc.nfsd 0 || true
  [ -z "$grace" ] || echo "$grace" >/proc/fs/nfsd/nfsv4gracetime || true
  [ -z "${mountd:-}" ] || kill "$mountd" || true
  umount "$base/server" 2>/dev/null || true
  rmdir "$base"/* "$base"
}
trap down EXIT
mkdir "$base"/{server,client}
mount -t tmpfs -o size=64m none "$base/server"
modprobe nfsd
grep -qs ' /proc/fs/nfsd ' /proc/mounts || mount -t nfsd nfsd /proc/fs/nfsd
[ "$(cat /proc/fs/nfsd/threads)" = 0 ] || { echo "ab-nfs.sh: this host serves NFS already; it is left alone" >&2; exit 1; }
grace=$(cat /proc/fs/nfsd/nfsv4gracetime)
echo 10 >/proc/fs/nfsd/nfsv4gracetime # no client has locks to reclaim
mkdir -p /var/lib/nfs/v4recovery /run/rpc_pipefs
touch /var/lib/nfs/{etab,rmtab}
rpc.mountd --foreground --no-nfs-version 3 >/dev/null 2>&1 & # it complains about rpcbind, which version 4 does not need
mountd=$!
served=1
rpc.nfsd --no-nfs-version 3 8
exported=1
exportfs -o rw,async,no_subtree_check,no_root_squash,insecure,fsid=0 "127.0.0.1:$base/server"
mount -t nfs4 -o vers=4.2,proto=tcp,nconnect=4 127.0.0.1:/ "$base/client"

now=$(cat /sys/module/workqueue/parameters/default_affinity_scope)
for engine in sync psync vsync pvsync libaio io_uring; do
  for way in write read; do
    heading "NFS over loopback: $engine, ${way}s of 512 bytes, 4 jobs"
    compare @default $way --arms "$now,$fine" -- "${fio[@]}" --directory="$base/client" --rw="rand$way" --bs=512 \
      --ioengine="$engine" --iodepth=8 --direct=1 --numjobs=4 --size=1m
  done
done
