#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The root file system of arm64 guests: pack-tree.sh OUTPUT.cpio DEB... Nothing of it runs here, so what the packages'
# scripts would do and a guest needs is done by hand.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
output=$(realpath "$1")
shift
tree=$(mktemp -d /tmp/wq-tuned-tree.XXXXXX)
trap 'rm -rf --one-file-system "$tree"' EXIT

"$here/unpack.sh" "$tree" "$@"
cd "$tree"
cp usr/share/base-passwd/passwd.master etc/passwd
cp usr/share/base-passwd/group.master etc/group
ln -sf dash usr/bin/sh
ln -sf mawk usr/bin/awk
# The accounts of packages: systemd's by its own sysusers.d, D-Bus's by a script.
cat >usr/lib/sysusers.d/wq-tests.conf <<'ACCOUNTS'
u messagebus - - -
ACCOUNTS
systemd-sysusers --root="$tree"
# Owners are whoever unpacked it; in the guest all of it is root's.
"$here/../guest/settle-tree.sh" "$tree" "$output" -R 0:0
