#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Speed of `wq-tunectl dump` compared with the kernel tree's wq_dump.py, in a guest with 24 CPUs and
# kernel 6.12:
# dump.sh STAGE-DIR (made by tests/guest/stage.sh). Fetches what wq_dump.py needs, about 500 MB, from Debian
# into the cache of the guest tests: drgn, the debug symbols of the kernel that ./dev fetch put there, and its
# source with the script.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/guest/common.sh
. "$here/../guest/common.sh"
stage=${1:?which stage?}
release=$(cat "$cache/kernels/6.12-$(recipe "$guest_dir/pack-kernel.sh")/release") || die "no kernel: run ./dev fetch"
lists=$cache/apt/trixie disk=$cache/drgn-$release-$(recipe "$here/dump.sh").tar

get() { # PACKAGE, into the current directory
  apt-get -qq -oDir::Etc::sourcelist="$lists/sources.list" -oDir::Etc::sourceparts=/dev/null \
    -oDir::Etc::preferences=/dev/null -oDir::Etc::preferencesparts=/dev/null -oDir::State::Lists="$lists/lists" \
    -oDir::Cache="$PWD" -oAPT::Sandbox::User=root -oAcquire::Check-Valid-Until=false download "$1"
}

make_disk() {
  local work root
  work=$(mktemp -d /tmp/wq-tuned-drgn.XXXXXX)
  # shellcheck disable=SC2064 # now
  trap "rm -rf --one-file-system '$work'" EXIT
  root=$work/root
  say "fetching drgn, debug symbols and source of $release"
  as_root unshare --mount mmdebstrap --quiet --variant=extract --include=python3-drgn --aptopt='Acquire::Check-Valid-Until "false"' \
    trixie "$root" "$(cat "$lists/sources.list")"
  for link in lib lib64 bin sbin; do [ -e "$root/$link" ] || ln -s "usr/$link" "$root/$link"; done
  mkdir -p "$root/proc" "$root/sys"
  cd "$work"
  get "linux-image-$release-dbg"
  dpkg-deb --fsys-tarfile linux-image-*-dbg_*.deb | tar -x -C "$root" "./usr/lib/debug/boot/vmlinux-$release"
  get linux-source-6.12
  dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xO --wildcards '*.tar.xz' | xz -dc |
    tar -xO --wildcards '*/tools/workqueue/wq_dump.py' >"$root/wq_dump.py"
  tar -C "$root" -cf "$disk.new" .
  mv "$disk.new" "$disk"
}

[ -e "$disk" ] || make_disk
results=$(mktemp -d)
"$guest_dir/boot.sh" --kernel 6.12 --smp 24,sockets=1,cores=12,threads=2 --stage "$stage" --results "$results" \
  --machine-args "-drive file=$disk,if=none,id=drgn,format=raw,readonly=on -device nvme,drive=drgn,serial=drgn" \
  --timeout 1800 --stream dump-speed
exit "$(cat "$results/dump-speed.rc")"
