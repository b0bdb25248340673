#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the trees of all guests have in common, whatever their architecture: settle-tree.sh TREE OUTPUT.cpio
# [CPIO-OPTION...]
set -euo pipefail

# All of it is unpacked into memory by an emulated CPU at every boot: what no guest needs goes. dpkg's database
# and perl-base stay: a package of ours is installed there, with its dependencies, triggers and scripts.
cd "$1"
output=$2
shift 2
rm -rf usr/share/{doc,man,locale,info,zoneinfo,i18n,fio,bash-completion} usr/lib/udev/hwdb.* \
  usr/lib/*-linux-gnu/{gconv,perl,perl5,dri} usr/share/perl var/lib/apt var/lib/dpkg/info/*.md5sums var/cache var/log/* \
  usr/lib/apt boot home media usr/bin/python3* usr/lib/python3* usr/share/python3 usr/lib/terminfo \
  usr/lib/*-linux-gnu/{libperl*,libapt*,libpython*} usr/lib/systemd/systemd-{networkd,resolved,timesyncd} \
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
find . -print0 | cpio --null --quiet -o -H newc "$@" >"$output"
