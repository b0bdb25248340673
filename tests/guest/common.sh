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

# Where apt on this machine takes bookworm from; the other suites live beside it.
mirror() {
  if [ -n "${WQ_TUNED_MIRROR:-}" ]; then
    printf '%s\n' "$WQ_TUNED_MIRROR"
    return
  fi
  debian_targets | awk '$1 == "bookworm" {print $2; exit}'
}

debian_targets() {
  # shellcheck disable=SC2016 # these dollars are apt's
  apt-get indextargets --format '$(RELEASE) $(REPO_URI) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' 'Component: main'
}

source_line() { # SUITE
  local uri keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  uri=$(mirror)
  [ -n "$uri" ] || die "no Debian bookworm among apt's sources: run 'apt-get update', or set WQ_TUNED_MIRROR"
  [ -r "$keyring" ] || die "$keyring is missing: install debian-archive-keyring"
  printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$uri" "$1"
}
