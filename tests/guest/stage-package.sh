#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the guest of the check `package` gets to see: no project, but its Debian package, made anew, and that
# package once more with a higher version, and with that of the release before. stage-package.sh STAGE-DIR [arm64]
set -euo pipefail
cd "$(dirname "$0")/../.."
./dev package ${2:+"$2"}
rm -rf "$1"
lib=$1/usr/lib/wq-tests
mkdir -p "$lib"
cp "build/package${2:+-$2}"/wq-tuned_*.deb "$lib/wq-tuned.deb"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb --raw-extract "$lib/wq-tuned.deb" "$work/next"
sed -i.orig 's/^Version: .*/&+1/' "$work/next/DEBIAN/control"
mv "$work/next/DEBIAN/control.orig" "$work/control"
dpkg-deb --root-owner-group --build "$work/next" "$lib/wq-tuned-next.deb" >/dev/null
sed 's/^Version: .*/Version: 0.1.0/' "$work/control" >"$work/next/DEBIAN/control"
dpkg-deb --root-owner-group --build "$work/next" "$lib/wq-tuned-old.deb" >/dev/null
