# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1-or-later
# Functions that the host-side scripts of the guest tests share. Source this file, do not run it.

PATH=$PATH:/usr/sbin:/sbin # depmod, modprobe

guest_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
arm64_dir=$(cd "$guest_dir/../arm64" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/wq-tuned
uefi=/usr/share/qemu-efi-aarch64/QEMU_EFI.fd # firmware for ACPI boots on arm64

# Sets the machine of an architecture: the QEMU program, its arguments, and the guest's two serial ports.
use_arch() { # amd64|arm64
  arch=$1
  case $arch in
    amd64)
      qemu=qemu-system-x86_64 console=ttyS0 port=ttyS1
      machine_words=(-machine q35 -cpu Skylake-Server -accel "tcg,thread=multi")
      kernel_words="tsc=reliable"
      ;;
    arm64) # thread=single: with a thread per CPU it is two to four times as slow, and RCU complains.
      qemu=qemu-system-aarch64 console=ttyAMA0 port=ttyAMA1
      machine_words=(-machine "virt,gic-version=3" -cpu neoverse-n1 -accel "tcg,thread=single")
      kernel_words=""
      ;;
    *) die "no architecture $1" ;;
  esac
}

say() { printf '%s %s\n' "$(date +%T)" "$*"; }
die() { say "$*" >&2; exit 1; }

# ---- For scripts with several boots

expect() { # WHAT EXPECTED ACTUAL
  [ "$2" = "$3" ] || die "FAILED: $1: expected '$2', found '$3'"
  echo "ok: $1${3:+: $3}"
}

# Boots a guest for one check, shows the check's output, and fails if the check failed.
run_in_guest() { # RESULTS CHECK BOOT-OPTION...
  local results=$1 check=$2
  shift 2
  "$guest_dir/boot.sh" --results "$results" "$@" "$check" || true # report.sh reports the failure
  "$guest_dir/report.sh" "$results" "$check" | sed '/^@file /d; s/^/  /' || die "FAILED: $check in the guest"
}

# `brought_out RESULTS CHECK FILE >COPY`: prints the file that the check gave to bring_out (lib.sh).
brought_out() {
  local text
  text=$(awk -v file="$3" '$1 == "@file" && $2 == file { print $3 }' "$1/$2.out")
  [ -n "$text" ] || die "FAILED: $2 brought no $3 out"
  base64 -d <<<"$text"
}

# Only apt and mmdebstrap need root; everything else runs as the caller.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo ${beside:+-n} "$@"; fi # in the background nobody can answer it
}

# Debian 12's own QEMU, 7.2, corrupts these guests.
qemu_is_good() {
  local version
  command -v "$qemu" >/dev/null || return 1
  version=$("$qemu" --version | sed -nE '1s/.*version ([0-9]+).*/\1/p')
  [ "${version:-0}" -ge 10 ]
}

# The Debian release of this machine. Guests have the same one, because programs built here need its libraries.
own_suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")

# Prints the packages of a release's guest tree: what the checks use, and the libraries that the project links.
guest_packages() { # SUITE
  echo systemd-sysv udev dbus kmod dmsetup fio jq procps util-linux strace xxhash libhwloc15 libsystemd0 libudev1 libbpf1
  case $1 in
    bookworm) echo libfmt9 libsimdjson14 ;;
    *) echo libfmt10 libsimdjson25 ;;
  esac
}

# Additional packages of the peers tree: the daemons that `./dev bench peers` compares with ours, and
# bpftrace.
peers_packages=irqbalance,tuned,systemd-oomd,bpftrace

# Additional packages of the distro tree, for conf/selinux and conf/tuned: Debian's SELinux policy, the tools
# to build a module for it, and tuned.
distro_packages=selinux-policy-default,selinux-policy-dev,make,tuned

# All packages of the arm64 tree: mmdebstrap's minbase, and the packages that pack-tree.sh adds to it.
arm64_tree_packages="base-files base-passwd bash bsdutils coreutils dash debianutils diffutils dpkg findutils grep gzip hostname init-system-helpers
  libc-bin login mount ncurses-base ncurses-bin passwd perl-base sed sysvinit-utils tar util-linux mawk
  $(guest_packages "$own_suite" | xargs)"

# The release of a tree: `trixie` is the usual tree of Debian 13, for its packages; the others are of this machine's.
tree_suite() { if [ "$1" = trixie ]; then echo trixie; else echo "$own_suite"; fi; }

# Prints the path of a tree for guests of this architecture: `tree_file guest|trixie|peers|distro`.
tree_file() {
  local made=("$guest_dir"/{pack,settle}-tree.sh) suite
  suite=$(tree_suite "$1")
  case $1-$arch in
    guest-amd64 | trixie-amd64) printf '%s/tree-%s-%s.cpio\n' "$cache" "$suite" "$(recipe "${made[@]}" <(guest_packages "$suite"))" ;;
    guest-arm64)
      made=("$arm64_dir"/{unpack,pack-tree}.sh "$guest_dir/settle-tree.sh")
      printf '%s/tree-arm64-%s.cpio\n' "$cache" "$(recipe "${made[@]}" <(echo "$arm64_tree_packages"))"
      ;;
    peers-amd64 | distro-amd64)
      local packages=$1_packages
      printf '%s/tree-%s-%s.cpio\n' "$cache" "$1" "$(recipe "${made[@]}" "$guest_dir/pack-more.sh" <(echo "$suite ${!packages}"))"
      ;;
    *) die "no $1 tree for $arch" ;;
  esac
}

# Prints the folder of a kernel of this architecture: {vmlinuz,modules.cpio,modules-bench.cpio,release}.
kernel_folder() { # VERSION
  printf '%s/kernels/%s%s-%s\n' "$cache" "$1" "$([ "$arch" = amd64 ] || echo "-$arch")" "$(recipe "$guest_dir/pack-kernel.sh")"
}

# The packages of the sysroot: arm64 programs are built with it, and QEMU's user emulation runs them with it.
sysroot_packages="libc6-dev libstdc++-$([ "$own_suite" = bookworm ] && echo 12 || echo 14)-dev libsystemd-dev libudev-dev libhwloc-dev libpcre2-dev libtoml11-dev libexpected-dev libfmt-dev
  libncurses-dev nlohmann-json3-dev libcli11-dev libxxhash-dev libsimdjson-dev libgtest-dev libgmock-dev libbpf-dev systemd ncurses-base"
sysroot_dir() { printf '%s/sysroot-arm64-%s\n' "$cache" "$(recipe "$arm64_dir"/{unpack,pack-sysroot}.sh <(echo "$own_suite $sysroot_packages"))"; }

# Prints a fingerprint of the files that make a cached object: if one of them changes, the object is made
# again.
recipe() { cat "$@" | sha256sum | cut -c1-12; }

# Prints the mirror from which apt on this machine gets its release. It must have the other suites too.
mirror() {
  if [ -n "${WQ_TUNED_MIRROR:-}" ]; then
    printf '%s\n' "$WQ_TUNED_MIRROR"
    return
  fi
  debian_targets | awk -v suite="$own_suite" '$1 == suite {print $2; exit}'
}

debian_targets() {
  # shellcheck disable=SC2016 # these dollars are apt's
  apt-get indextargets --format '$(RELEASE) $(REPO_URI) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' 'Component: main'
}

source_line() { # SUITE
  local uri keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  uri=$(mirror)
  [ -n "$uri" ] || die "no Debian $own_suite among apt's sources: run 'apt-get update', or set WQ_TUNED_MIRROR"
  [ -r "$keyring" ] || die "$keyring is missing: install debian-archive-keyring"
  printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$uri" "$1"
}

use_arch amd64
