#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The root file system that all guests share: pack-tree.sh SOURCE-LINE OUTPUT.cpio
# [PACKAGE,...], as root. With further packages it is the tree of one kind of guest.
set -euo pipefail
line=$1 output=$2
tree=$(mktemp -d /tmp/wq-tuned-tree.XXXXXX)
trap 'rm -rf --one-file-system "$tree"' EXIT

packages=systemd-sysv,udev,dbus,kmod,dmsetup,fio,jq,procps,util-linux,strace,xxhash,polkitd
packages+=,libhwloc15,libfmt9,libsystemd0,libudev1,libbpf1,libsimdjson14${3:+,$3}
# Its mounts of /proc, /sys and /dev are nobody else's, and end with it.
printf '%s\n' "$line" | unshare --mount mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" \
  --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  bookworm "$tree" -

"$(dirname "$0")/settle-tree.sh" "$tree" "$output"
