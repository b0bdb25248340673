#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds the RPMs on Debian, checks them with rpmlint, installs them into an empty root, and compares their
# files and modes with those of the Debian packages. rpm.sh OUT-DIR DEB-DIR (`./dev rpm`)
set -euo pipefail
out=$(realpath -m "$1") debs=$(realpath "$2")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/guest/common.sh
. tests/guest/common.sh

version=$(dpkg-deb --field "$debs"/wq-tuned_*.deb Version)
as_root rm -rf --one-file-system "$out"
mkdir -p "$out/SOURCES"
sed "s/^\(Version: *\).*/\1$version/" rpm/wq-tuned.spec >"$out/wq-tuned.spec"
git ls-files -z | tar --create --gzip --null --files-from=- --transform="s,^,wq-tuned-$version/," --file="$out/SOURCES/wq-tuned-$version.tar.gz"
# --nodeps: Debian's packages satisfy the dependencies, but under other names.
rpmbuild --quiet --nodeps --load=tests/distro/rpm-macros --define "_topdir $out" -bb "$out/wq-tuned.spec" >"$out.log" 2>&1 ||
  { tail -n 20 "$out.log"; die "the build failed; the complete output is in $out.log"; }
rpms=("$out"/RPMS/*/*.rpm)
rpmlint --config tests/distro/rpmlint.toml rpm/wq-tuned.spec "${rpms[@]}"

root=$out/root
mkdir -p "$root"
# --noscripts: the root is empty, so no script could run.
as_root rpm --root "$root" --nodeps --noscripts --install "${rpms[@]}"
as_root rpm --root "$root" --nodeps --verify wq-tuned wq-tunectl
"$root/usr/bin/wq-tunectl" --version

# Both functions drop the files that only one packaging tool adds (changelogs, licences), and hide where
# Debian differs: compressed documents, zsh's folder, and in Debian 12 the folder of units.
of_deb() { # PACKAGE
  dpkg-deb --fsys-tarfile "$debs/$1"_*.deb | tar --list --verbose | awk '/^-/ {print $1, substr($NF, 2)}' |
    sed -E 's, /lib/, /usr/lib/,; s,/zsh/vendor-completions/,/zsh/site-functions/,; s/\.gz$//; \, /usr/share/doc/[^/]+/(changelog|copyright|NEWS\.Debian)$,d'
}
of_rpm() { # PACKAGE
  rpm --query --package --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$out"/RPMS/*/"$1"-"$version"-*.rpm | grep '^-' |
    sed -E 's/\.gz$//; \, /usr/(share/licenses|lib/\.build-id)/,d'
}
for one in wq-tuned wq-tunectl; do
  diff --unified=0 --label "$one.deb" <(of_deb $one | sort) --label "$one.rpm" <(of_rpm $one | sort) || die "$one: the packages differ"
done
for one in "${rpms[@]}"; do
  rpm --query --package --scripts "$one" | sed 's/^[a-z]* *scriptlet (using.*//' | sh -n || die "$one: syntax error in a scriptlet"
done
ls "${rpms[@]}"
