#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the stage for the check `package`, only with Debian packages: newly built ones ("now"), and the same with
# a higher version ("next").
# stage-package.sh STAGE-DIR [arm64|trixie]
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${2:-} in
  trixie) ./dev package --suite trixie ;;
  *) ./dev package ${2:+"$2"} ;;
esac
rm -rf "$1"
lib=$1/usr/lib/wq-tests
mkdir -p "$lib"
cp debian/tests/tool "$lib/autopkgtest-tool"
cp debian/tests/daemon "$lib/autopkgtest-daemon"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pack() { dpkg-deb --root-owner-group --build "$work/$1" "$lib/$1-$2.deb" >/dev/null; }
for one in wq-tunectl wq-tuned; do
  cp "build/package${2:+-$2}/$one"_*.deb "$lib/$one-now.deb"
  dpkg-deb --raw-extract "$lib/$one-now.deb" "$work/$one"
  sed -i 's/^Version: .*/&+1/; s/wq-tunectl (= [^)]*/&+1/' "$work/$one/DEBIAN/control"
  pack $one next
done
