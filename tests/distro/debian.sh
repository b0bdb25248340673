#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs a command in a root of its own of a Debian release: debian.sh SUITE PACKAGE,... COMMAND
# COMMAND is for bash, as root, in the checkout, which is mounted as /src. Without PACKAGEs the root is as fresh as
# mmdebstrap makes it. The root stays in the cache; what COMMAND changes outside of /src and its cache is removed.
set -euo pipefail
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/../guest/common.sh"
source=$(cd "$guest_dir/../.." && pwd)
suite=$1 packages=$2
shift 2
root=$cache/debian/$suite-$(recipe <(echo "$packages"))

get_root() {
  mkdir -p "$cache/debian"
  exec 9>"$cache/debian/lock"
  flock 9
  [ -e "$root" ] && return
  say "$suite: unpacking (some minutes)"
  as_root rm -rf --one-file-system "$root.new"
  # mmdebstrap's mounts of /proc, /sys and /dev are in their own namespace, and end with it.
  source_line "$suite" | as_root unshare --mount env PATH=/usr/sbin:/usr/bin:/sbin:/bin mmdebstrap --quiet --mode=root --variant=apt \
    --include="ca-certificates,debian-archive-keyring${packages:+,$packages}" \
    --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' \
    "$suite" "$root.new" - >"$cache/debian/$suite.log" 2>&1 ||
    { tail -n 20 "$cache/debian/$suite.log"; die "$suite could not be unpacked"; }
  as_root mkdir -p "$root.new/src" "$root.new/cache"
  as_root mv -T "$root.new" "$root"
}

get_root
exec 9>&-
own_cache=$cache/debian/cache-$suite
mkdir -p "$own_cache"
work=$(mktemp -d "$cache/debian/work.XXXXXX")
trap 'as_root rm -rf --one-file-system "$work"' EXIT
code=0
# All mounts are in this namespace, and end with it.
# shellcheck disable=SC2016 # the inner shell expands these
as_root unshare --mount --pid --fork --kill-child env -i ROOT="$root" SOURCE="$source" CACHE="$own_cache" WORK="$work" \
  PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -euc '
    mkdir "$WORK"/{upper,index,root}
    mount -t overlay overlay -o "lowerdir=$ROOT,upperdir=$WORK/upper,workdir=$WORK/index" "$WORK/root"
    cd "$WORK/root"
    mount --bind "$SOURCE" src
    mount --bind "$CACHE" cache
    mount --rbind /dev dev
    mount --rbind --make-rslave /sys sys
    mount -o remount,bind,ro sys
    mount -t proc proc proc
    mount -t tmpfs tmpfs tmp
    cp --remove-destination -L /etc/resolv.conf etc/resolv.conf
    exec chroot . env HOME=/root GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=/src XDG_CACHE_HOME=/cache LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -euc "cd /src; $0"' "$*" || code=$?
as_root chown -R "$(id -u):$(id -g)" "$own_cache"
[ ! -e "$source/build" ] || as_root chown -R "$(id -u):$(id -g)" "$source/build"
exit $code
