#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A root shell in a guest: shell.sh KERNEL SMP STAGE-DIR. The guest ends with the shell, or by Ctrl-A X.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/common.sh"
kernel_dir=$(kernel_folder "$1")
work=$(mktemp -d /tmp/wq-tuned-guest.XXXXXX)
trap 'rm -rf "$work"' EXIT

mkdir "$work/overlay"
cp -a "$3/." "$work/overlay/"
units=$work/overlay/etc/systemd/system
mkdir -p "$units/multi-user.target.wants"
ln -s ../shell.service "$units/multi-user.target.wants/"
cat >"$units/shell.service" <<UNIT
[Unit]
After=multi-user.target
[Service]
Environment=TERM=linux HOME=/root
ExecStart=/bin/bash -il
ExecStopPost=/bin/systemctl poweroff --force --force
StandardInput=tty
TTYPath=/dev/$console
UNIT
(cd "$work/overlay" && find . -mindepth 1 -print0 | cpio --null --quiet -R 0:0 -o -H newc) |
  cat "$(tree_file guest)" "$kernel_dir/modules.cpio" - >"$work/initrd"
"$qemu" "${machine_words[@]}" -m 3G -smp "$2" -nographic -no-reboot -nic none \
  -kernel "$kernel_dir/vmlinuz" -initrd "$work/initrd" \
  -append "console=$console quiet panic=-1 nowatchdog mitigations=off $kernel_words"
