#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The init of a guest without systemd (boot.sh --bare): sets up only what runner.sh and the checks need.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
ln -s /proc/self/fd /dev/fd # bash: <(...)
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
export DM_DISABLE_UDEV=1 # device-mapper's nodes are made by dmsetup itself
/bin/bash /usr/lib/wq-tests/runner.sh
sync
echo o >/proc/sysrq-trigger # in case the runner did not come to its end
sleep 60
