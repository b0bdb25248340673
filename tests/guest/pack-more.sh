#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The tree of one kind of guest: pack-more.sh SOURCE-LINE SUITE GUEST.cpio OUTPUT.cpio PACKAGE,..., as root. The usual tree
# GUEST.cpio with, after it, what PACKAGEs bring that is not in it: that keeps its own settings, and its recipe knows
# nothing of this one.
set -euo pipefail
line=$1 suite=$2 guest=$3 output=$4 packages=$5
tree=$(mktemp -d /tmp/wq-tuned-tree.XXXXXX)
trap 'rm -rf --one-file-system "$tree"' EXIT

# Its mounts of /proc, /sys and /dev are nobody else's, and end with it.
printf '%s\n' "$line" | unshare --mount env PATH=/usr/sbin:/usr/bin:/sbin:/bin mmdebstrap --quiet --mode=root --variant=minbase --include="systemd-sysv,udev,dbus,$packages" \
  --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  "$suite" "$tree" -
cd "$tree"
rm -rf --one-file-system usr/share/{doc,man,locale,info,zoneinfo,i18n,bash-completion,perl,icons,pixmaps} usr/lib/udev/hwdb.* var/lib/{apt,dpkg} var/{cache,log}/* \
  usr/lib/x86_64-linux-gnu/{gconv,perl,perl5,dri} usr/include boot home media dev etc/machine-id etc/hostname
# The accounts of these packages are the one thing that both trees have and that has to be theirs.
{
  cpio --quiet -t <"$guest" | grep -vxE '\./etc/(passwd|group|shadow|gshadow)|etc/(passwd|group|shadow|gshadow)' | sed 's#^\./##'
} | sort -u >"$tree.has"
find . -mindepth 1 -printf '%P\n' | sort | comm -23 - "$tree.has" | cpio --quiet -o -H newc >"$tree.more"
cat "$guest" "$tree.more" >"$output"
rm "$tree.has" "$tree.more"
