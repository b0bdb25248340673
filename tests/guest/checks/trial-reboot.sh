# SPDX-License-Identifier: LGPL-2.1-or-later
# A comparison goes on after a reboot in its middle. reboot.sh boots this check twice, with /var/lib/wq-tuned on
# the same disk. The first boot ends in the middle of a slot, without a stop of the daemon. The second one has
# the pairs of the first on the kernel command line: wq_tests.pairs=N wq_tests.boot_id=ID.
# timeout: 400
. lib.sh

word() { sed -nE "s/.*wq_tests\.$1=([0-9a-f-]+).*/\1/p" <<<"$guest_append"; }
pairs=$(word pairs)
store=/var/lib/wq-tuned disk=/dev/nvme0n1
[ -n "$pairs" ] || mkfs.ext4 -q $disk
mkdir -p $store
mount $disk $store

other=$(other_scope)
crypt_c0
load=""
put_back() {
  load_off
  systemctl stop wq-tuned
  umount $store
}
trap put_back EXIT
# A very small alpha, so that there is no verdict.
trial_policy "auto:$other" 'alpha = 0.0000001' 'max_pairs = 2000'
boot_id=$(cat /proc/sys/kernel/random/boot_id)

if [ -z "$pairs" ]; then
  load_on c0
  systemctl start wq-tuned
  on_disk() { [ "$(ledger_pairs)" -ge 5 ]; } # it is written once a minute
  wait_until 240 on_disk || fail "$(ledger_pairs) pairs in the ledger: $(trial_of "$wq" reason)"
  bring_out $ledger
  note "boot $boot_id: $(ledger_pairs) pairs on disk"
  sleep 1 # the output is out
  wait_until 60 in_place || fail "the candidate never comes"
  echo b >/proc/sysrq-trigger
  sleep infinity
fi

note "boot $boot_id: $(ledger_pairs) pairs on disk"
[ "$boot_id" != "$(word boot_id)" ] || fail "this is the same boot"
check_eq "pairs on disk" "$pairs" "$(ledger_pairs)"
check_eq "nothing in /run" "" "$(ls /run/wq-tuned 2>/dev/null)"
expect_scope "$wq" default
systemctl start wq-tuned
check_eq "it knows its pairs" "$pairs" "$(trial_of "$wq" pairs)"
load_on c0
wait_until 120 has_pairs "$wq" $((pairs + 3)) || fail "it does not go on: $(trial_of "$wq" reason)"
wq-tunectl pause # the pair that runs is completed
is_at_rest() { [ "$(status | jq .daemon.experiments.measuring)" = 0 ]; }
wait_until 60 is_at_rest || fail "a pair does not end: $(wq-tunectl status)"
now=$(trial_of "$wq" pairs)
systemctl stop wq-tuned
check_eq "no pair is lost, or counted twice" "$now" "$(ledger_pairs)"
bring_out $ledger
note "$pairs pairs of the first boot, $((now - pairs)) of this one"
