#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The root file system that all guests share: pack-tree.sh SOURCE-LINE OUTPUT.cpio
# [PACKAGE,...], as root. With further packages it is the tree of one kind of guest.
set -euo pipefail
line=$1 output=$2
tree=$(mktemp -d /tmp/wq-tuned-tree.XXXXXX)
trap 'rm -rf --one-file-system "$tree"' EXIT

packages=systemd-sysv,udev,dbus,kmod,dmsetup,fio,jq,procps,util-linux,strace,xxhash,polkitd
packages+=,libhwloc15,libfmt9,libsystemd0,libudev1,libbpf1${3:+,$3}
# Its mounts of /proc, /sys and /dev are nobody else's, and end with it.
printf '%s\n' "$line" | unshare --mount mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" \
  --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  bookworm "$tree" -

# All of it is unpacked into memory by an emulated CPU at every boot: what no guest needs goes. dpkg's database
# and perl-base stay: a package of ours is installed there, with its dependencies, triggers and scripts.
cd "$tree"
rm -rf usr/share/{doc,man,locale,info,zoneinfo,i18n,fio,bash-completion} usr/lib/udev/hwdb.* \
  usr/lib/x86_64-linux-gnu/{gconv,perl,perl5,dri} usr/share/perl var/lib/apt var/lib/dpkg/info/*.md5sums var/cache var/log/* \
  usr/lib/apt boot home media usr/bin/python3* usr/lib/python3* usr/share/python3 usr/lib/terminfo \
  usr/lib/x86_64-linux-gnu/{libperl*,libapt*,libpython*} usr/lib/systemd/systemd-{networkd,resolved,timesyncd} \
  usr/share/{pixmaps,zsh,lintian,debconf,gdb}
mkdir -p var/cache home

ln -sf usr/lib/systemd/systemd init
echo guest >etc/hostname
echo 0123456789abcdef0123456789abcdef >etc/machine-id
: >etc/fstab
mkdir -p etc/systemd/journald.conf.d
printf '[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\n' >etc/systemd/journald.conf.d/guest.conf
# The serial getty would take the console; the others have nothing to do here and cost seconds.
for unit in serial-getty@.service getty@.service getty.target systemd-logind.service apt-daily.timer \
  apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-hwdb-update.service \
  systemd-pstore.service systemd-random-seed.service systemd-timesyncd.service ldconfig.service \
  nfs-server.service nfs-client.target rpcbind.service rpcbind.socket \
  systemd-journal-catalog-update.service systemd-update-done.service systemd-firstboot.service; do
  ln -sf /dev/null "etc/systemd/system/$unit"
done
find . -print0 | cpio --null --quiet -o -H newc >"$output"
