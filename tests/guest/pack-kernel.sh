#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# From a kernel's packages to what a guest boots: pack-kernel.sh DIR RELEASE.
# DIR holds the .deb files; DIR/out becomes {vmlinuz,modules.cpio,modules-bench.cpio,release}.
set -euo pipefail
dir=$1 release=$2

# A whole modules tree triples the initrd; these and what they need are enough. What a
# kernel has built in, or has not at all, is passed over.
wanted="dm-crypt brd null_blk loop aesni-intel xts aes_generic aes essiv ecb cbc sha256_generic sha256
  virtio_console virtio_pci virtio_rng configfs nvme nvme-loop nvmet raid456 xfs btrfs"
bench_wanted="nfsd nfsv4" # in the other one

for deb in "$dir"/*.deb; do dpkg-deb -x "$deb" "$dir/all"; done
# 6.1 has them below /lib.
[ -e "$dir/all/usr/lib/modules" ] || { mkdir -p "$dir/all/usr/lib" && mv "$dir/all/lib/modules" "$dir/all/usr/lib/" && rm -r "$dir/all/lib"; }
all=$dir/all/usr/lib/modules/$release
[ -d "$all" ] || mkdir -p "$all" # 7.0 and 7.1 have no modules package
ln -sfn usr/lib "$dir/all/lib"
depmod -b "$dir/all" "$release"

mkdir -p "$dir/out"
pack() { # NAME MODULES: DIR/out/NAME.cpio with these and what they need
  local small=$dir/$1/usr/lib/modules/$release module relative list
  mkdir -p "$small"
  ln -s usr/lib "$dir/$1/lib"
  for module in $2; do
    modprobe --dirname="$dir/all" --set-version="$release" --show-depends "$module" 2>/dev/null || true
  done | sed -nE 's/^insmod (\S+).*/\1/p' | sort -u | while read -r file; do
    relative=${file#*"/modules/$release/"}
    install -D -m 644 "$file" "$small/$relative"
    # The host is quicker at this than the guest.
    case $relative in *.xz) xz -d "$small/$relative" ;; *.zst) zstd -q -d --rm "$small/$relative" ;; esac
  done
  for list in modules.builtin modules.builtin.modinfo modules.order; do
    [ ! -e "$all/$list" ] || cp "$all/$list" "$small/"
  done
  depmod -b "$dir/$1" "$release"
  rm "$dir/$1/lib" # the guest's own link stays as it is
  (cd "$dir/$1" && find . -mindepth 1 -print0 | cpio --null --quiet -R 0:0 -o -H newc) >"$dir/out/$1.cpio"
}
pack modules "$wanted"
pack modules-bench "$wanted $bench_wanted"

for image in "$dir/all/boot/vmlinuz-$release" "$all/vmlinuz"; do
  [ ! -e "$image" ] || cp "$image" "$dir/out/vmlinuz"
done
[ -e "$dir/out/vmlinuz" ]
printf '%s\n' "$release" >"$dir/out/release"
