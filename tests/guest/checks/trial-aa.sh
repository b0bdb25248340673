# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sixteen comparisons at once, each of two words for one partition: whatever is seen is noise. All are undecided after
# max_pairs pairs, and the differences are about zero. Targets whose partitions are equal would share a comparison, and
# take turns in it; so each has a mask of its own. The writes of a window are at most 1% of it, and take some ms each in
# an emulator: sixteen share a slot only if windows are long.
# timeout: 2400
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh

jobs=()
wqs=()
for i in $(seq 0 15); do
  crypt_open "c$i" $((i % 4))
  wqs+=("$(wq_of "c$i")")
  # All CPUs but number i, and from the ninth on but one more.
  printf '%x\n' $((0xff & ~(1 << i % 8) & ~(i < 8 ? 0 : 1 << (i + 1) % 8))) >"$workqueues/${wqs[i]}/cpumask"
  jobs+=(--name="j$i" --filename="/dev/mapper/c$i")
done
fio --rw=randwrite --bs=16k --iodepth=4 --ioengine=libaio --direct=1 --time_based --runtime=3600 --rate_iops=20 "${jobs[@]}" >/dev/null 2>&1 &
load=$!
trap load_off EXIT
window=8s trial_policy leave
systemctl start wq-tuned
# Its own partition by another word: `cache` where the kernel has `default`.
# Ordered by the bus: sixteen `wq-tunectl trial` that wait would keep an emulated daemon busy with their questions.
for wq in "${wqs[@]}"; do
  busctl --system call org.wqtuned1 /org/wqtuned1 org.wqtuned1.Manager Trial ss "$wq" cache
done
sleep 60
note "$(status | jq -c .daemon.experiments)"
wait_until 2000 ended 16 || note "not all have ended: $(status | jq -c .daemon.experiments)"
jq -c '.verdicts[] | [.target, .verdict, .reason, .pairs, .dropped, .effect_percent, .interval_percent, .e_regressed, .e_improved]' $verdicts
check_eq "verdicts" 16 "$(jq '.verdicts | length' $verdicts)"
check_eq "undecided" 16 "$(jq '[.verdicts[] | select(.verdict == "undecided")] | length' $verdicts)"
# The interval of 95% misses zero in one of twenty: in more than four of sixteen, once in a thousand runs.
missed=$(jq '[.verdicts[] | select(.interval_percent != null and (.interval_percent[0] > 0 or .interval_percent[1] < 0))] | length' $verdicts)
note "intervals beside zero: $missed of 16"
[ "$missed" -le 4 ] || fail "the order of the windows, or their pools, favour an arm"
systemctl stop wq-tuned
expect_no_probes
