#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A root shell in a guest: shell.sh KERNEL SMP STAGE-DIR. Leaving the shell ends it; Ctrl-A X too.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/common.sh"
kernel_dir=$cache/kernels/$1-$(recipe "$guest_dir/pack-kernel.sh")
work=$(mktemp -d /tmp/wq-tuned-guest.XXXXXX)
trap 'rm -rf "$work"' EXIT

mkdir "$work/overlay"
cp -a "$3/." "$work/overlay/"
units=$work/overlay/etc/systemd/system
mkdir -p "$units/multi-user.target.wants"
ln -s ../shell.service "$units/multi-user.target.wants/"
cat >"$units/shell.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Environment=TERM=linux HOME=/root
ExecStart=/bin/bash -il
ExecStopPost=/bin/systemctl poweroff --force --force
StandardInput=tty
TTYPath=/dev/ttyS0
UNIT
(cd "$work/overlay" && find . -mindepth 1 -print0 | cpio --null --quiet -R 0:0 -o -H newc) |
  cat "$(tree_file guest)" "$kernel_dir/modules.cpio" - >"$work/initrd"
"$qemu" -machine q35 -m 3G -accel tcg,thread=multi -cpu Skylake-Server -smp "$2" -nographic -no-reboot -nic none \
  -kernel "$kernel_dir/vmlinuz" -initrd "$work/initrd" \
  -append "console=ttyS0 quiet panic=-1 tsc=reliable nowatchdog mitigations=off"
