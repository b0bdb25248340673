#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Speed of the code inside the daemon: prints each bound of the design, the measured value, and whether the
# bound is held.
#   speed.sh PROGRAM [RESULTS.json]
# All times are CPU time, so that a busy machine does not change the comparison. The repetitions of all arms
# are in random order, and their medians are compared. Trees are in memory (/dev/shm, 3 GB). REPETITIONS is 9
# by default.
set -euo pipefail

program=$1
results=${2:-$(mktemp)}
unset TMPDIR # trees then go to /dev/shm
"$program" --benchmark_repetitions="${REPETITIONS:-9}" --benchmark_enable_random_interleaving=true --benchmark_min_time=0.02 \
  --benchmark_format=json >"$results"

jq -r '
  def median($name): [.benchmarks[] | select(.aggregate_name == "median" and .run_name == $name) | .cpu_time] |
    if length == 1 then .[0] else error("no median of \($name)") end;
  def places($n): . * pow(10; $n) | round / pow(10; $n);
  def held($bound): if . <= $bound then "held" else "NOT HELD" end;
  # Slope of the least-squares line through the logarithms of CPUs and time.
  def exponent($shape; $from):
    [. as $all | 64 * pow(2; range(0; 8)) | select(. >= $from) | . as $n | {x: ($n | log), y: ($all | median("plan/\($shape)/\($n)") | log)}] |
    (map(.x) | add / length) as $mx | (map(.y) | add / length) as $my |
    (map((.x - $mx) * (.y - $my)) | add) / (map(pow(.x - $mx; 2)) | add) | places(2);
  def ms: . / 1e6 | places(2);
  def rate: 1e9 / . | round;
  ["sockets-of-32x2", "one-llc", "sockets-of-one"] as $shapes |
  "| bound | measured | |", "|---|---|---|",
  (. as $all | $shapes[] | . as $s | $all |
    median("plan/\($s)/8192") as $plan | median("hwloc/\($s)/8192") as $hwloc |
    "| plan for 8,192 CPUs, \($s): under 0.1 of hwloc\u0027s load | \($plan / $hwloc | places(4)): \($plan | ms) of \($hwloc | ms) ms | \($plan / $hwloc | held(0.1)) |",
    (exponent($s; 64) as $all_of_it |
    "| growth of a plan from 64 to 8,192 CPUs, \($s): exponent at most 1 | \($all_of_it); \(exponent($s; 1024)) from 1,024 | \($all_of_it | held(1)) |")),
  (median("apply/daemon") as $ours | median("apply/same-calls") as $same |
    "| 1,000 targets applied: at most 1.2 of a bare loop of the same calls | \($ours / $same | places(2)): \($ours | ms) of \($same | ms) ms | \($ours / $same | held(1.2)) |")
' "$results"
