# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 600
# Counting must not favour an arm: the slowdown of a saturating load differs by at most 1% between the
# coarsest and the finest scope. By an emulator's clock the interval is wider than that: the check prints it, and
# fails only if the whole interval is beyond the bound. In the boot observer-icount the clock counts instructions,
# and the load of the host has no effect. The check `overhead` measures the cost under pool->lock.
. lib.sh

crypt_c0
fio --name=load --filename=/dev/mapper/c0 --rw=randwrite --bs=512 --norandommap --iodepth=16 --ioengine=libaio --direct=1 \
  --time_based --runtime=3600 --numjobs=4 >/dev/null 2>&1 &
load=$!
trap 'load_off; echo default >"$workqueues/$wq/affinity_scope"' EXIT
sleep 2
rounds=20 window=3
[[ $guest_append != *wq_tests.icount* ]] || rounds=10 window=2 # slower, with less noise
/usr/lib/wq-tests/observe "$wq" cpu system $rounds $window >/run/wq-tests/observe.json
jq -c '.rounds[]' /run/wq-tests/observe.json
jq -r '"items per second, medians: \([.rounds | transpose[] | sort | .[length / 2 | floor] | round] | join(" "))",
  "one of \(.every) items was timed; the load was slower by (percent, 95% interval):",
  (.slower | to_entries[] | "  \(.key): \(.value.percent * 100 | round / 100) (\(.value.interval | map(. * 100 | round / 100) | join(" to ")))")' \
  /run/wq-tests/observe.json
[ "$(jq '.slower.coarse_more.interval | .[0] <= 1 and .[1] >= -1' /run/wq-tests/observe.json)" = true ] ||
  fail "counting favours a scope"
load_off
echo default >"$workqueues/$wq/affinity_scope"
trap - EXIT
expect_no_probes
crypt_close c0
