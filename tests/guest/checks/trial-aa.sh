# SPDX-License-Identifier: LGPL-2.1-or-later
# Sixteen A/A comparisons at once: both arms of each are names of the same partition, so every difference is
# noise. All are undecided after max_pairs pairs, and the differences are about zero. Targets with equal
# partitions would share a comparison and take turns in it, so each has its own mask. The writes of a window
# may take at most 1% of its time, and each takes some ms in an emulator, so the windows must be long for
# sixteen targets in one slot.
# timeout: 2400
. lib.sh

jobs=()
wqs=()
for i in $(seq 0 15); do
  crypt_open "c$i" $((i % 4))
  wqs+=("$(wq_of "c$i")")
  # All CPUs except number i; from the ninth on, one more is missing.
  printf '%x\n' $((0xff & ~(1 << i % 8) & ~(i < 8 ? 0 : 1 << (i + 1) % 8))) >"$workqueues/${wqs[i]}/cpumask"
  jobs+=(--name="j$i" --filename="/dev/mapper/c$i")
done
fio --rw=randwrite --bs=16k --iodepth=4 --ioengine=libaio --direct=1 --time_based --runtime=3600 --rate_iops=20 "${jobs[@]}" >/dev/null 2>&1 &
load=$!
trap load_off EXIT
window=8s trial_policy leave
systemctl start wq-tuned
# The same partition by another name: `cache`, where the kernel has `default`.
# By calls on the bus, because sixteen waiting `wq-tunectl compare` would keep an emulated daemon busy.
for wq in "${wqs[@]}"; do
  busctl --system call org.wqtuned1 /org/wqtuned1 org.wqtuned1.Manager Compare ss "$wq" cache
done
sleep 60
note "$(status | jq -c .daemon.experiments)"
wait_until 2000 ended 16 || note "not all have ended: $(status | jq -c .daemon.experiments)"
kill -0 "$load" || fail "the load ended by itself"
jq -c '[.target, .verdict, .reason, .pairs, .effect_percent, .interval_percent, .e_regressed, .e_improved]' $verdicts
check_eq "verdicts" 16 "$(jq -s length $verdicts)"
check_eq "targets, and different CPUs" "16 16" "$(jq -s '[.[].target], [.[].cpus] | unique | length' $verdicts | paste -sd' ')"
check_eq "undecided after all pairs" 16 "$(jq -s '[.[] | select(.verdict == "undecided" and .reason == "max_pairs")] | length' $verdicts)"
# A guard that was rarely measured has no interval.
intervals=$(jq -s '[.[].interval_percent | values] | length' $verdicts)
[ "$intervals" -ge 12 ] || fail "only $intervals of 16 have an interval"
# A 95% interval misses zero in one of twenty cases; more than four of sixteen miss it once in a thousand
# runs.
missed=$(jq -s '[.[] | select(.interval_percent != null and (.interval_percent[0] > 0 or .interval_percent[1] < 0))] | length' $verdicts)
note "intervals beside zero: $missed of $intervals"
[ "$missed" -le 4 ] || fail "the order of the windows, or their pools, favour an arm"
systemctl stop wq-tuned
expect_no_probes
