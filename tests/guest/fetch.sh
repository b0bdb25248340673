#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Fills the cache with what a guest needs: fetch.sh [--peers|--distro|--trixie|--arm64] [KERNEL...] (default: 6.12 7.2).
# --peers: also the tree of `./dev bench peers`; --distro: also
# that with SELinux and tuned; --trixie: also that of Debian 13; --arm64: instead, everything for arm64 guests; --sysroot: only the libraries of
# `./dev build arm64`.
#
# Each object is made in a temporary directory and renamed when it is complete, so that the cache has no
# incomplete objects. A lock prevents that two runs make objects at the same time.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/common.sh"

# `apt_suite NAME COMMAND...`: runs apt with its own sources and lists; those of the machine do not change.
# The Release file of a mirror may have expired. NAME-arm64 is the same for arm64, without installed packages:
# apt downloads a package with all its dependencies.
apt_suite() {
  local dir=$cache/apt/$1 command=$2 foreign=()
  case $1 in
    *-arm64) foreign=(-oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::status=/dev/null -oDebug::NoLocking=true) ;;
  esac
  shift 2
  "$command" -oDir::Etc::sourcelist="$dir/sources.list" -oDir::Etc::sourceparts=/dev/null \
    -oDir::Etc::preferences=/dev/null -oDir::Etc::preferencesparts=/dev/null \
    -oDir::State::Lists="$dir/lists" -oDir::Cache="$dir/cache" -oAPT::Sandbox::User=root \
    -oAcquire::Check-Valid-Until=false -oAcquire::Languages=none -oAcquire::Retries=3 "${foreign[@]}" "$@"
}

update_suite() { # NAME, with the lines of its sources on stdin
  mkdir -p "$cache/apt/$1/lists/partial" "$cache/apt/$1/cache/archives/partial"
  cat >"$cache/apt/$1/sources.list"
  apt_suite "$1" apt-get -qq update
}

# The libraries come from the machine's own suites, security updates included.
machine_lines() {
  debian_targets | while read -r suite uri component; do
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s %s\n' \
      "$uri" "$suite" "$component"
  done
}

# Without recommended packages: those of qemu-user would change how this machine runs programs of other
# architectures.
get_qemu() {
  local packages=qemu-system-x86 from=$own_suite
  qemu_is_whole && return
  [ "$arch" = amd64 ] || packages="qemu-system-arm qemu-efi-aarch64 qemu-user"
  [ "$own_suite" != bookworm ] || from=bookworm-backports
  say "QEMU: installing 10 from $from"
  { machine_lines; source_line "$from"; } | update_suite qemu
  # shellcheck disable=SC2086 # one or more names
  DEBIAN_FRONTEND=noninteractive apt_suite qemu as_root_apt -qq install -y --no-install-recommends \
    -t "$from" $packages >"$cache/qemu-install.log" 2>&1 ||
    { tail -n 20 "$cache/qemu-install.log"; die "QEMU could not be installed"; }
  qemu_is_whole || die "QEMU 10 or later is needed, found: $("$qemu" --version | head -n 1)"
}

# arm64 also needs firmware and the user emulation.
qemu_is_whole() {
  qemu_is_good || return 1
  [ "$arch" = amd64 ] || { [ -e "$uefi" ] && command -v qemu-aarch64 >/dev/null; }
}

as_root_apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@"; }

# Makes kernels/VERSION/{vmlinuz,modules.cpio,modules-bench.cpio,release} from the newest build on the mirror.
get_kernel() {
  local version=$1 suite line work packages release dir
  dir=$(kernel_folder "$version")
  [ -e "$dir" ] && return
  case $version in
    6.1) suite=bookworm ;;
    6.12) suite=trixie ;;
    6.18 | 7.0 | 7.1 | 7.3) suite=trixie-backports ;;
    7.2) suite=sid ;;
    *) die "no suite known for kernel $version" ;;
  esac
  say "kernel $version, $arch: downloading from $suite"
  line=$(source_line "$suite")
  [ "$arch" = amd64 ] || suite=$suite-$arch
  update_suite "$suite" <<<"$line"
  # From 7.0 on the image is split in two; before, one package holds both.
  release=$(apt_suite "$suite" apt-cache pkgnames "linux-" |
    sed -nE "s/^linux-(image|binary)-(${version//./\\.}\.[0-9].*-cloud-$arch)$/\2/p" | sort -uV | tail -n 1)
  [ -n "$release" ] || die "the mirror's $suite has no kernel $version any more"
  packages=$(apt_suite "$suite" apt-cache pkgnames "linux-" |
    grep -Fx -e "linux-binary-$release" -e "linux-modules-$release" -e "linux-base-$release" || echo "linux-image-$release")
  work=$(mktemp -d "$cache/tmp.XXXXXX")
  # shellcheck disable=SC2086 # one to three names
  (cd "$work" && apt_suite "$suite" apt-get -qq download $packages)
  "$guest_dir/pack-kernel.sh" "$work" "$release"
  mkdir -p "$cache/kernels"
  mv "$work/out" "$dir"
  rm -rf "$work"
  say "kernel $version: $release, modules $(du -h "$dir/modules.cpio" | cut -f1)"
}

# `arm64_packages NAME...`: downloads these packages and their dependencies, and sets arm64_debs to the files.
arm64_packages() {
  source_line "$own_suite" | update_suite "$own_suite-arm64"
  apt_suite "$own_suite-arm64" apt-get -qq clean
  apt_suite "$own_suite-arm64" apt-get -qq install --download-only --yes --no-install-recommends "$@"
  arm64_debs=("$cache/apt/$own_suite-arm64"/cache/archives/*.deb)
}

get_sysroot() {
  local work dir arm64_debs
  dir=$(sysroot_dir)
  [ -e "$dir" ] && return
  say "arm64 libraries: downloading and unpacking"
  work=$(mktemp -d "$cache/tmp.XXXXXX")
  # shellcheck disable=SC2086 # many names
  arm64_packages $sysroot_packages
  "$arm64_dir/pack-sysroot.sh" "$work/sysroot" "${arm64_debs[@]}"
  mv "$work/sysroot" "$dir"
  rm -rf "$work"
  say "arm64 libraries: $(du -sh "$dir" | cut -f1)"
}

get_tree() { # guest|trixie [PACKAGE...]
  local work file arm64_debs suite
  suite=$(tree_suite "$1")
  file=$(tree_file "$1")
  [ -e "$file" ] && return
  say "$1 tree, $arch: building (half a minute)"
  work=$(mktemp -d "$cache/tmp.XXXXXX")
  if [ "$arch" = arm64 ]; then
    # shellcheck disable=SC2086 # many names
    arm64_packages $arm64_tree_packages
    "$arm64_dir/pack-tree.sh" "$work/tree.cpio" "${arm64_debs[@]}" >"$work/log" 2>&1
  else
    as_root "$guest_dir/pack-tree.sh" "$(source_line "$suite")" "$suite" "$work/tree.cpio" "$(guest_packages "$suite" | xargs | tr ' ' ,)${2:+,$2}" >"$work/log" 2>&1
  fi || { tail -n 20 "$work/log"; die "the $1 tree could not be built"; }
  mv "$work/tree.cpio" "$file"
  rm -rf "$work"
  say "$1 tree: $(du -h "$file" | cut -f1)"
}

get_more_tree() { # peers|distro PACKAGE,...
  local work file
  file=$(tree_file "$1")
  [ -e "$file" ] && return
  say "$1 tree: building (a minute)"
  work=$(mktemp -d "$cache/tmp.XXXXXX")
  as_root "$guest_dir/pack-more.sh" "$(source_line "$own_suite")" "$own_suite" "$(tree_file guest)" "$work/tree.cpio" "$2" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log"; die "the $1 tree could not be built"; }
  mv "$work/tree.cpio" "$file"
  rm -rf "$work"
  say "$1 tree: $(du -h "$file" | cut -f1)"
}

more=none
case ${1:-} in --peers | --distro | --trixie | --arm64 | --sysroot) more=${1#--} && shift ;; esac
mkdir -p "$cache"
exec 9>"$cache/lock"
flock --nonblock 9 || { say "another run is filling the cache; waiting for it"; flock 9; }
# Nobody else holds the lock, so these are leftovers of a run that was killed.
rm -rf "$cache"/tmp.*

if [ "$more" = sysroot ]; then
  get_sysroot
  exit
fi
[ "$more" != arm64 ] || use_arch arm64
get_qemu
get_tree guest
case $more in
  trixie) get_tree trixie ;;
  peers) get_more_tree peers "$peers_packages" ;;
  distro) get_more_tree distro "$distro_packages" ;;
esac
for version in "${@:-6.12 7.2}"; do
  for one in $version; do get_kernel "$one"; done
done
