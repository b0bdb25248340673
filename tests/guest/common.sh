# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1-or-later
# What every host-side script of the guest tests shares. Sourced, never run.

guest_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/wq-tuned
qemu="qemu-system-x86_64"

say() { printf '%s %s\n' "$(date +%T)" "$*"; }
die() { say "$*" >&2; exit 1; }

# Only apt and mmdebstrap need root; everything else runs as the caller.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# QEMU 7.2, which Debian 12 has by itself, corrupts these guests.
qemu_is_good() {
  local version
  command -v "$qemu" >/dev/null || return 1
  version=$("$qemu" --version | sed -nE '1s/.*version ([0-9]+).*/\1/p')
  [ "${version:-0}" -ge 10 ]
}

# What the bench tree has beside the usual one: an NFS server, which no other guest needs.
bench_packages=nfs-kernel-server,nfs-common

# And the peers' tree: the daemons that `./dev bench peers` has beside ours, and bpftrace.
peer_packages=irqbalance,tuned,systemd-oomd,bpftrace

# The tree of a guest: `tree_file guest`, `tree_file bench` or `tree_file peers`.
tree_file() {
  case $1 in
    guest) printf '%s/tree-%s.cpio\n' "$cache" "$(recipe "$guest_dir/pack-tree.sh")" ;;
    bench) printf '%s/tree-bench-%s.cpio\n' "$cache" "$(recipe "$guest_dir/pack-tree.sh" <(echo "$bench_packages"))" ;;
    peers) printf '%s/tree-peers-%s.cpio\n' "$cache" "$(recipe "$guest_dir"/pack-{tree,peers}.sh <(echo "$peer_packages"))" ;;
  esac
}

# One recipe's fingerprint: what was made by another recipe is not reused.
recipe() { cat "$@" | sha256sum | cut -c1-12; }
