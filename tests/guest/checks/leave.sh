# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `leave` leaves: while a workqueue that follows @default must be left, @default is not moved, in no window and
# for good. The scope that is effective for it, sampled every 100 ms through comparisons, restarts, kills and new
# devices, is always the kernel's.
# timeout: 400
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh

other=$(other_scope)
crypt_open c0
crypt_open c1
left=$(wq_of c0)
busy=$(wq_of c1)
parameter=/sys/module/workqueue/parameters/default_affinity_scope
kernels=$(cat $parameter)
effective() { cat "$workqueues/$left/affinity_scope"; }
before=$(effective)
default_is() { [ "$(cat $parameter)" = "$1" ]; }
blames() { grep -qF "$1" <<<"$(target @default reason)"; } # TEXT

# `rules LINE...`: LINEs, then @default with the scope that makes other pods as its candidate.
rules() {
  trial_policy auto 'min_items = 1'
  { sed '/^\[\[workqueue/,$d' /etc/wq-tuned/wq-tuned.toml
    printf '%s\n' '[default_scope]' 'scope = "auto"' "candidates = [\"$other\"]" "$@"; } >/run/wq-tests/rules
  policy </run/wq-tests/rules
}
sample() {
  while sleep 0.1; do effective; done >/run/wq-tests/samples
}
load_on c1
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

note "-- without such a rule @default is compared: the sampled workqueue has a scope of its own meanwhile"
kill $sampler
note "$(wc -l </run/wq-tests/samples) samples"
check_eq "effective" "$before" "$(sort -u /run/wq-tests/samples)"
rules '[[workqueue]]' "match = [\"$left\", \"$busy\", \"$(wq_of c2)\"]" 'scope = "cpu"' 'hold = true'
wq-tunectl reload
wait_until 120 default_is "$other" || fail "@default is never moved: $(target @default reason)"

note "-- a workqueue that must be left and begins to follow it puts it back, until a reload"
sed -i 's/^scope = "cpu"$/scope = "leave"/; /^hold/d' /etc/wq-tuned/wq-tuned.toml
wq-tunectl reload
wait_until 10 default_is "$kernels" || fail "@default holds $(cat $parameter)"
expect_scope "$left" default

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
