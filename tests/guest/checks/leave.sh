# SPDX-License-Identifier: LGPL-2.1-or-later
# `leave` leaves: while a workqueue that follows @default must be left, @default is not moved, in no window and
# for good. The scope that is effective for it, sampled every 100 ms through comparisons, restarts, kills and new
# devices, is always the kernel's.
# timeout: 400
. lib.sh

other=$(other_scope)
crypt_open c0
crypt_open c1
left=$(wq_of c0)
parameter=/sys/module/workqueue/parameters/default_affinity_scope
kernels=$(cat $parameter)
effective() { cat "$workqueues/$left/affinity_scope"; }
before=$(effective)
default_is() { [ "$(cat $parameter)" = "$1" ]; }
blames() { grep -qF "$1" <<<"$(target @default reason)"; } # TEXT

# `rules LINE...`: LINEs, then @default with the scope that makes other pods as its candidate.
rules() {
  trial_policy auto
  { sed '/^\[\[workqueue/,$d; s/^min_items.*/min_items = 1/' /etc/wq-tuned/wq-tuned.toml
    printf '%s\n' '[default_scope]' 'scope = "auto"' "candidates = [\"$other\"]" "$@"; } >/run/wq-tests/rules
  policy </run/wq-tests/rules
}
sample() {
  while sleep 0.1; do effective; done >/run/wq-tests/samples
}
load_on c1 2 --rate_iops=200
sample &
sampler=$!
trap 'kill $sampler 2>/dev/null || true; load_off' EXIT

rules '[[workqueue]]' 'match = "kcryptd-*"' 'scope = "leave"'
systemctl start wq-tuned
sleep 15
check_eq "state of @default" leave "$(target @default state)"
blames "$left" || fail "reason: $(target @default reason)"
systemctl restart wq-tuned
sleep 5
systemctl kill -s KILL wq-tuned
wait_until 60 is_active || fail "not started again"
crypt_open c2
sleep 10
wq-tunectl compare @default --with "$other" 2>/run/wq-tests/err && fail "an order moves @default"
grep -q "must stay" /run/wq-tests/err || fail "$(cat /run/wq-tests/err)"
check_eq "the kernel's default" "$kernels" "$(cat $parameter)"

kill $sampler
note "$(wc -l </run/wq-tests/samples) samples"
check_eq "effective, every 100 ms" "$before" "$(sort -u /run/wq-tests/samples)"

note "-- while it is moved, a new workqueue that must be left puts it back, until a reload"
rules '[[workqueue]]' 'match = "kcryptd-254:3-*"' 'scope = "leave"' '[[workqueue]]' 'match = "*"' 'scope = "auto"'
wq-tunectl reload
wq-tunectl pin @default "$other"
default_is "$other" || fail "@default holds $(cat $parameter)"
crypt_open c3
wait_until 10 default_is "$kernels" || fail "@default holds $(cat $parameter)"
check_eq "the new one" "$before" "$(cat "$workqueues/$(wq_of c3)/affinity_scope")"
wait_until 5 state_is @default reverted || fail "state of @default: $(target @default state)"
crypt_close c3
systemctl kill -s KILL wq-tuned
wait_until 60 is_active || fail "not started again"
sleep 3
default_is "$kernels" || fail "mounts make it flap"

note "-- who sets @default himself moves it, and is told what follows"
policy <<EOF
judge.settle = "1d"
[default_scope]
scope = "$other"
[[workqueue]]
match = "*"
scope = "leave"
EOF
wq-tunectl reload
wait_until 5 default_is "$other" || fail "@default holds $(cat $parameter): $(target @default reason)"
blames "$left" || fail "reason: $(target @default reason)"

note "-- a revert of a follower: @default is not moved before a reload"
rules '[[workqueue]]' 'match = "*"' 'scope = "auto"'
wq-tunectl reload
wait_until 5 default_is "$kernels" || fail "@default holds $(cat $parameter)"
wq-tunectl revert "$left"
blames "reverted by an operator" || fail "reason: $(target @default reason)"
systemctl stop wq-tuned
check_eq "at the end" "$before" "$(effective)"
