# SPDX-License-Identifier: LGPL-2.1-or-later
# A rule for cache_shard never silently becomes `cache`: the daemon checks for the feature, and reads back
# what it wrote.
. lib.sh

crypt_c0
apply_policy cache_shard
echo system >"$workqueues/$wq/affinity_scope" # a baseline whose pods differ from those of cache_shard everywhere
systemctl start wq-tuned
if [ -e /sys/module/workqueue/parameters/cache_shard_size ]; then
  expect_scope "$wq" cache_shard
  systemctl stop wq-tuned
  check_eq "after stop" system "$(scope_of "$wq")"
else
  check_eq "scope" system "$(scope_of "$wq")"
  check_eq "state" unsupported "$(target "$wq" state)"
  target "$wq" reason | grep -q "unsupported.*cache_shard" || fail "reason: $(target "$wq" reason)"
  check_eq "writes" 0 "$(daemon_field writes)"
  systemctl stop wq-tuned

  # A tree whose parameters claim the feature, with the real workqueues: this kernel accepts the scope and
  # stores `cache`.
  root=$(mktemp -d)
  mkdir -p "$root"/{proc,etc/wq-tuned,run,sys/module/workqueue/parameters,sys/devices/{system,virtual/workqueue}}
  cp /etc/wq-tuned/wq-tuned.toml "$root/etc/wq-tuned/"
  cp -r /sys/module/workqueue/parameters/default_affinity_scope "$root/sys/module/workqueue/parameters/"
  echo 8 >"$root/sys/module/workqueue/parameters/cache_shard_size"
  mount --bind /sys/devices/virtual/workqueue "$root/sys/devices/virtual/workqueue"
  mount --rbind /sys/devices/system "$root/sys/devices/system"
  trap 'kill %1 2>/dev/null || true; umount -R "$root/sys/devices/system" "$root/sys/devices/virtual/workqueue"' EXIT
  wq-tuned --root "$root" 2>"$root/log" &
  wait_until 10 grep -q "stored 'cache' for 'cache_shard'" "$root/log" || fail "not noticed: $(cat "$root/log")"
  check_eq "baseline put back" system "$(scope_of "$wq")"
  kill %1
  wait %1
  check_eq "after stop" system "$(scope_of "$wq")"
fi
echo default >"$workqueues/$wq/affinity_scope"
crypt_close c0
