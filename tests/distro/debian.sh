#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds and tests the project with the libraries of another Debian release: debian.sh SUITE PACKAGE...
# The suite's tree stays in the cache and is mounted read-only; the build goes to build/SUITE.
set -euo pipefail
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/../guest/common.sh"
source=$(cd "$guest_dir/../.." && pwd)
suite=$1
shift
tree=$cache/debian/$suite-$(recipe <(echo "$@"))

get_suite() { # PACKAGE...
  mkdir -p "$cache/debian"
  exec 9>"$cache/debian/lock"
  flock 9
  [ -e "$tree" ] && return
  say "$suite: unpacking (some minutes)"
  as_root rm -rf --one-file-system "$tree.new"
  # mmdebstrap's mounts of /proc, /sys and /dev are in their own namespace, and end with it.
  source_line "$suite" | as_root unshare --mount mmdebstrap --quiet --mode=root --variant=apt --include="$(IFS=,; echo "$*")" \
    --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$suite" "$tree.new" - >"$cache/debian/$suite.log" 2>&1 ||
    { tail -n 20 "$cache/debian/$suite.log"; die "$suite could not be unpacked"; }
  as_root mkdir -p "$tree.new"/work/main "$tree.new/ccache"
  as_root mv -T "$tree.new" "$tree"
}

# Runs a command in the suite's tree. The mounts are in their own namespace, and end with it.
# shellcheck disable=SC2016 # the inner shell expands these
in_suite() {
  as_root unshare --mount --pid --fork --kill-child env -i TREE="$tree" SOURCE="$source" CCACHE="$cache/ccache-$suite" \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -euc '
      mount --bind "$TREE" "$TREE"
      mount --bind "$SOURCE" "$TREE/work/main"
      mount --bind "$CCACHE" "$TREE/ccache"
      mount --rbind /dev "$TREE/dev"
      mount --rbind --make-rslave /sys "$TREE/sys"
      mount -o remount,bind,ro "$TREE/sys"
      mount -t proc proc "$TREE/proc"
      mount -t tmpfs tmpfs "$TREE/tmp"
      mount -o remount,bind,ro "$TREE"
      exec chroot "$TREE" env HOME=/root CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=/ccache CCACHE_BASEDIR=/work/main \
        CCACHE_NOHASHDIR=1 LC_ALL=C.UTF-8 bash -euc "$@"' bash "$@"
}

get_suite "$@"
mkdir -p "$cache/ccache-$suite" "$source/build/$suite"
code=0
# shellcheck disable=SC2016 # so does this one
in_suite 'cd /work/main
  cmake --preset dev -B "build/$0" && cmake --build "build/$0" -- -k 0 && ctest --test-dir "build/$0" -L unit --no-tests=error -j "$(nproc)" --output-on-failure' "$suite" || code=$?
as_root chown -R "$(id -u):$(id -g)" "$source/build/$suite" "$cache/ccache-$suite"
exit $code
