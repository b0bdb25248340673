# SPDX-License-Identifier: LGPL-2.1-or-later
# Every workqueue is listed once, even if there are more than fit into the read buffer.
. lib.sh
out=/run/wq-tests/workqueues
devices=240 # each has two workqueues
key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
table="0 64 crypt aes-xts-plain64 $key$(rev <<<"$key") 0 /dev/ram0 0"
put_back() {
  for i in $(seq $devices); do echo "m$i"; done | xargs -n 40 dmsetup remove --noudevsync 2>/dev/null
  udevadm control --start-exec-queue
}
trap put_back EXIT
modprobe brd rd_nr=4 rd_size=65536
udevadm settle
udevadm control --stop-exec-queue
names="" # many at once, because a process for each would take long
for i in $(seq $devices); do names+="m$i,,,rw,$table;"; done
dmsetup create --noudevsync --noudevrules --concise "${names%;}"
for i in 1 2 3; do
  wq-tunectl top --once --json >$out
  listed=$(jq -r '.workqueues[].name' $out | sort)
  there=$(find $workqueues/*/max_active -printf '%h\n' | sed 's#.*/##' | sort)
  note "$(wc -l <<<"$listed") workqueues, $(wc -l <<<"$there") of them in sysfs"
  check_eq "listed once: those of the crypt devices" $((devices * 2)) "$(grep -c ^kcryptd <<<"$listed")"
  check_eq "in sysfs, and not listed" "" "$(comm -13 <(uniq <<<"$listed") <(echo "$there"))"
  check_eq "in sysfs, and listed twice" "" "$(comm -12 <(uniq -d <<<"$listed") <(echo "$there"))"
done
