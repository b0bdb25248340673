#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The first program of a guest with SELinux (rdinit=): an initrd keeps no labels, so they are set before systemd starts.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
load_policy -i
setfiles -F -e /proc -e /sys /etc/selinux/default/contexts/files/file_contexts / || echo "setfiles: exit code $?" >/dev/console
umount /sys/fs/selinux /sys /proc # systemd mounts its own
exec /sbin/init
