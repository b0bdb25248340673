# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 400
# `cpumask` of a rule and of [default_mask]: it is set, kept over a restart, and restored exactly after a kill
# and at the stop. `housekeeping` follows a cpuset partition that is made and removed. The value of an
# external writer stays.
. lib.sh
put_back() { if [ -d $cgroup ]; then partition_removed; fi; }
trap put_back EXIT

number() { local text; text=$(tr -d , <"$1") && echo $((16#$text)); }
holds() { [ "$(number "$1")" = $((16#$2)) ]; } # FILE MASK
expect_mask() { # FILE MASK [SECONDS]: the daemon looks at cpusets at its ticks, every 15 s
  wait_until "${3:-5}" holds "$1" "$2" || fail "$1 has $(cat "$1"), not $2; $(status | jq -c .masks)"
  note "ok: $1 has $2"
}
mask() { status | jq -r --arg name "$1" --arg key "$2" '.masks[] | select(.name == $name) | .[$key]'; }
all_masks() { cat $workqueues/cpumask $workqueues/cpumask_requested "$file"; }
requested=$workqueues/cpumask_requested

crypt_c0
file=$workqueues/$wq/cpumask
before=$(all_masks)
note "before: $(tr '\n' ' ' <<<"$before")"
masks_policy() { # OF-ALL OF-KCRYPTD
  policy <<EOF
default_scope.manage = false
judge.settle = "1d"
default_mask.cpumask = "$1"
[[workqueue]]
match = "kcryptd-*"
scope = "leave"
cpumask = "$2"
EOF
}

note "-- a mask that this host cannot have"
masks_policy 0-5 4-99
wq-tunectl check 2>/run/wq-tests/err && fail "check finds nothing"
grep -qE '^/etc/wq-tuned/wq-tuned.toml:7:11: cpumask has CPUs 8-99, which this host does not have' /run/wq-tests/err ||
  fail "check says: $(cat /run/wq-tests/err)"

note "-- set, both"
masks_policy 0-5 2-5
systemctl start wq-tuned
expect_mask $workqueues/cpumask 3f
expect_mask $requested 3f
expect_mask "$file" 3c
check_eq "state of all" "set 0-5 0-7" "$(mask @default_mask state) $(mask @default_mask cpumask) $(mask @default_mask baseline)"
check_eq "state" "set 2-5 0-7" "$(mask "$wq" state) $(mask "$wq" cpumask) $(mask "$wq" baseline)"
check_eq "undo" 2 "$(wq-tunectl undo | grep -c '/cpumask')"
wq-tunectl status | grep -qE "^$wq +2-5 +0-7 +2-5 +set" || fail "status: $(wq-tunectl status)"

note "-- a restart leaves them"
systemctl restart wq-tuned
check_eq "writes of the new daemon" 0 "$(daemon_field writes)"
check_eq "state" set "$(mask "$wq" state)"

note "-- kill -9: put back, and set again"
mark
systemctl kill --kill-whom=main --signal=KILL wq-tuned
restored() { [ "$(since_mark | grep -c 'cpumask restored to CPUs')" = 2 ]; }
wait_until 20 restored || fail "not put back: $(since_mark)"
wait_until 20 is_active || fail "not started again"
expect_mask $requested 3f
expect_mask "$file" 3c
check_eq "the first baseline" "0-7" "$(mask "$wq" baseline)"

note "-- a partition that the kernel takes out of the mask of all itself"
partition_made 2-3
expect_mask $workqueues/cpumask 33
sees_it() { [ "$(mask @default_mask cpumask)" = 0-1,4-5 ]; } # at a tick, too
wait_until 20 sees_it || fail "status: $(status | jq -c .masks)"
check_eq "state of all" "set 0-1,4-5 0-1,4-5" "$(mask @default_mask state) $(mask @default_mask cpumask) $(mask @default_mask planned)"
expect_mask $requested 3f
check_eq "an explicit mask stays" 2-5 "$(mask "$wq" cpumask)"

note "-- housekeeping, while it is there, without it, and with it again"
masks_policy housekeeping housekeeping
wq-tunectl reload
expect_mask "$file" f3
expect_mask $workqueues/cpumask f3
partition_removed
expect_mask "$file" ff 30
expect_mask $workqueues/cpumask ff 30
check_eq "all masks" "$before" "$(all_masks)"
partition_made 2-3
expect_mask "$file" f3 30
expect_mask $workqueues/cpumask f3
partition_removed
expect_mask "$file" ff 30
systemctl stop wq-tuned
check_eq "after the stop" "$before" "$(all_masks)"

note "-- a fixed mask, a start and a stop while there is a partition"
masks_policy 0-5 2-5
partition_made 2-3
systemctl start wq-tuned
expect_mask $workqueues/cpumask 33
expect_mask "$file" 3c
systemctl restart wq-tuned
check_eq "writes of the new daemon" 0 "$(daemon_field writes)"
check_eq "states" "set set" "$(mask @default_mask state) $(mask "$wq" state)"
mark
systemctl stop wq-tuned
since_mark | grep -q '@default_mask: cpumask restored to CPUs 0-7; isolated CPUs 2-3 may get unbound work' || fail "the journal: $(since_mark)"
partition_removed
check_eq "after the stop" "$before" "$(all_masks)"

note "-- the kill switch"
masks_policy 0-5 2-5
systemctl start wq-tuned
expect_mask "$file" 3c
touch /etc/wq-tuned/disabled
wq-tunectl reload
expect_mask "$file" ff
check_eq "all masks" "$before" "$(all_masks)"
rm /etc/wq-tuned/disabled
wq-tunectl reload
expect_mask "$file" 3c

note "-- kept at the stop, and put back after the next one"
mkdir -p /etc/wq-tuned/wq-tuned.toml.d
printf '[daemon]\non_exit = "keep"\n' >/etc/wq-tuned/wq-tuned.toml.d/10-keep.toml
wq-tunectl reload
systemctl stop wq-tuned
expect_mask "$file" 3c
rm /etc/wq-tuned/wq-tuned.toml.d/10-keep.toml
systemctl start wq-tuned
check_eq "the first baseline" "0-7" "$(mask "$wq" baseline)"
systemctl stop wq-tuned
check_eq "all masks" "$before" "$(all_masks)"
systemctl start wq-tuned
expect_mask "$file" 3c

note "-- an external writer of one, and the stop"
mark
echo 1 >"$file"
is_external() { [ "$(mask "$wq" state)" = external ]; }
wait_until 20 is_external || fail "state: $(mask "$wq" state)"
mask "$wq" reason | grep -q 'an external writer wrote CPUs 0' || fail "reason: $(mask "$wq" reason)"
wq-tunectl reload
systemctl restart wq-tuned
check_eq "state after a restart" external "$(mask "$wq" state)"
expect_mask "$file" 1
since_mark | grep -q "$wq: cpumask holds CPUs 0, which an external writer wrote" || fail "the journal: $(since_mark)"
check_eq "the other one" set "$(mask @default_mask state)"
systemctl stop wq-tuned
expect_mask "$file" 1
sed -n 3p <<<"$before" >"$file"
check_eq "after the stop" "$before" "$(all_masks)"
