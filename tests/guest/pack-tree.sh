#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The root file system that all guests share: pack-tree.sh SOURCE-LINE SUITE OUTPUT.cpio PACKAGE,..., as root
set -euo pipefail
line=$1 suite=$2 output=$3 packages=$4
tree=$(mktemp -d /tmp/wq-tuned-tree.XXXXXX)
trap 'rm -rf --one-file-system "$tree"' EXIT

# Its mounts of /proc, /sys and /dev are nobody else's, and end with it.
printf '%s\n' "$line" | unshare --mount env PATH=/usr/sbin:/usr/bin:/sbin:/bin mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" \
  --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  "$suite" "$tree" -

"$(dirname "$0")/settle-tree.sh" "$tree" "$output"
