#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What is built for arm64 is built against this: pack-sysroot.sh DIR DEB...
set -euo pipefail
"$(dirname "$0")/unpack.sh" "$@"
# An absolute link leads out of the tree, and the linker would take the static library beside it.
find "$1" -xdev -type l -lname '/*' -printf '%P\t%l\n' | while IFS=$'\t' read -r link target; do
  up=$(dirname "$link" | sed -E 's#[^/]+#..#g')
  ln -sfn "$up$target" "$1/$link"
done
