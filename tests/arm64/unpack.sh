#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Debian packages of another architecture, unpacked and never configured: unpack.sh DIR DEB...
# Nothing of them runs here. DIR gets a merged /usr, and a dpkg database that calls all of them installed: for
# dpkg-shlibdeps here, and for dpkg in the guest whose tree DIR is.
set -euo pipefail
dir=$1
shift
mkdir -p "$dir"/usr/{bin,sbin,lib} "$dir"/var/lib/dpkg/{info,updates,triggers,parts}
for link in bin sbin lib; do ln -s "usr/$link" "$dir/$link"; done
echo 1 >"$dir/var/lib/dpkg/info/format" # files of Multi-Arch: same have the architecture in their names
: >"$dir/var/lib/dpkg/available"

for deb in "$@"; do
  dpkg-deb --fsys-tarfile "$deb" | tar --extract --keep-directory-symlink --no-same-owner --directory "$dir" \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' --file -
  control=$(mktemp -d)
  dpkg-deb --control "$deb" "$control"
  name=$(dpkg-deb -f "$deb" Package)
  [ "$(dpkg-deb -f "$deb" Multi-Arch)" != same ] || name+=:$(dpkg-deb -f "$deb" Architecture)
  for file in "$control"/*; do
    case ${file##*/} in
      control) ;;
      md5sums) ;; # long, and for nobody
      *) cp "$file" "$dir/var/lib/dpkg/info/$name.${file##*/}" ;;
    esac
  done
  dpkg-deb --fsys-tarfile "$deb" | tar --list --file - | sed 's#^\.##; s#\(.\)/$#\1#; s#^/$#/.#' >"$dir/var/lib/dpkg/info/$name.list"
  sed -E '/^Package:/a Status: install ok installed' "$control/control" | grep -v '^$'
  if [ -e "$control/conffiles" ]; then
    echo "Conffiles:"
    while read -r file; do
      echo " $file $(md5sum <"$dir$file" | cut -d' ' -f1)"
    done < <(grep '^/' "$control/conffiles")
  fi
  echo
  rm -r "$control"
done >"$dir/var/lib/dpkg/status"
