# SPDX-License-Identifier: LGPL-2.1-or-later
# A hundred dm-crypt devices, opened and closed together in several rounds: each gets its scope, and no entry
# stays.
# timeout: 3000
. lib.sh
. storm.sh

devices=$(scaled 100 12)
key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
modprobe brd rd_nr=4 rd_size=65536
apply_policy "$(other_scope)"
systemctl start wq-tuned
before=$(status | jq -c '[.targets[].name]')

# Without waiting for udev, so that the order of the events is random.
open_all() {
  local i
  for ((i = 0; i < devices; i++)); do
    dmsetup create --noudevsync "s$i" --table "0 2048 crypt aes-xts-plain64 $key$(rev <<<$key) 0 /dev/ram$((i % 4)) 0" &
  done
  wait
}
close_all() {
  local i
  for ((i = 0; i < devices; i++)); do dmsetup remove --noudevsync --retry "s$i" & done
  wait
}
# Reads the files, because asking the daemon all the time would be another storm.
all_are_set() { [ "$(grep -lx "$(other_scope)" "$workqueues"/kcryptd-*/affinity_scope 2>/dev/null | wc -l)" = "$devices" ]; }
none_is_left() { [ "$(status | jq -c '[.targets[].name]')" = "$before" ]; }

storm_begin
for round in 1 2 3 4 5 6 7 8; do
  # In every other round they are closed before the daemon can handle them.
  open_all
  if [ $((round % 2)) = 1 ]; then
    wait_until 300 all_are_set || fail "round $round: not all of $devices have their scope: $(head "$workqueues"/kcryptd-*/affinity_scope)"
    check_eq "round $round: applied" "$devices" "$(applied)"
    expect_planned
  fi
  close_all
  wait_until 300 entries_are 0 || fail "round $round: $(entries) entries are left"
  wait_until 60 none_is_left || fail "round $round: targets that are gone are shown"
  sample
done
note "figures: $devices devices at once, 8 times; $(daemon_field writes) writes"
storm_end $((devices * 8 + 20))
