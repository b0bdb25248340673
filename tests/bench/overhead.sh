#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The cost of counting per work item, in one run: the same load with nothing attached (off), with our
# counters, and with those of peers.bpf.c, in turn. The order of the arms rotates from round to round.
#   overhead.sh TARGET ITEMS COMMAND...   COMMAND is the load; each run must have at least ITEMS items
# ARMS in the environment selects other arms than the usual ones, for instance top and functions (see
# overhead.cpp).
#
# The times of an arm are medians over the rounds, in ns per item of TARGET (which the kernel counts by
# itself):
#   exact     time in the programs, as measured by the kernel, in separate rounds: measuring has a cost too
#   least     the smallest exact of all rounds: losing the CPU in a program only adds to it
#   net       exact minus the time of as many runs of programs that do nothing (arm none), which is the time
#             of the clock reads of the kernel around each run
#   cpu wall  of the whole load, including everything else on the machine; then the difference to off in the
#             same round, +- half of the interquartile range. A difference below its +- is not significant.
# Arm sampled is ours with one of 1000 items timed. The cost of its program at workqueue_queue_work, minus the
# clock reads, is the cost under pool->lock of an item that is not timed: the bound is 80 instructions
# (--icount). Arm enqueue is sampled with the counter `enqueue`, whose own programs run outside the lock.
# The bound is that ours costs less than wqlat, compared by exact. exact has the work of the programs, but not
# their entry and exit, of which ours has four per item and wqlat two; cpu has these too.
# In an emulator that shares its real CPUs, most of this is noise (exact was anywhere from 0.4 to 1.0 of that
# of wqlat).
# So `./dev bench overhead` counts instructions, 1 ns each, on one CPU (boot.sh --icount). This repeats to
# 1 %, whatever else the machine does; wall has no meaning then. Instructions are not time: caches and
# contended locks are not included. RESULTS.md has the results.
set -euo pipefail
here=$(dirname "$0")
target=$1 least=$2
shift 2
rounds=${ROUNDS:-5} exact_rounds=${EXACT_ROUNDS:-3}
bpftrace=""
if command -v bpftrace >/dev/null; then bpftrace=bpftrace; fi
read -ra arms <<<"${ARMS:-off none ours sampled enqueue bare wqlat $bpftrace}" # off, none, ours and wqlat are required
results=$(mktemp)
trap 'rm -f "$results"' EXIT

run_all() { # ROUNDS [--exact]
  local round i arm
  for ((round = 0; round < $1; round++)); do
    for ((i = 0; i < ${#arms[@]}; i++)); do
      arm=${arms[(i + round) % ${#arms[@]}]}
      "$here/overhead" ${2:+"$2"} "$arm" "$target" "${command[@]}" | jq -c ".round = $round" >>"$results"
    done
  done
}
command=("$@")
"$here/overhead" off "$target" "${command[@]}" >/dev/null # warm-up
run_all "$rounds"
run_all "$exact_rounds" --exact

jq -rs --argjson least "$least" --arg arms "${arms[*]}" '
def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def spread: sort | (.[length * 3 / 4 | floor] - .[length / 4 | floor]) / 2;
def total(key): [.programs[] | .[key]] | add // 0;
def per_run($arm): map(select(.arm == $arm).programs | map_values(.ns / .runs)) | [.[] | to_entries[]] | group_by(.key)
  | map({key: .[0].key, value: (map(.value) | median | round)});
def named: map("\(.key) \(.value)") | join(", ");
def row: map(tostring | (15 - length) * " " + .) | join("");
def ratio(a; b): (a / b * 100 | round) / 100;

. as $all
| map(select(.items < $least)) | if length > 0 then error("too few items: \(.[0])") else . end
| $all | map(select((.arm == "ours" or .arm == "sampled" or .arm == "enqueue") and .counted < 0.98 * .items)) | if length > 0 then error("not all counted: \(.[0])") else . end
| ($all | map(select(.exact))) as $exact | ($all | map(select(.exact | not))) as $timed
| ($timed | map(select(.arm == "off")) | map({(.round | tostring): .}) | add) as $off
| ($exact | map(select(.arm == "none") | total("ns") / total("runs")) | median) as $floor
| def times($arm): ($timed | map(select(.arm == $arm))) as $runs
    | ($exact | map(select(.arm == $arm))) as $exacts
    | {arm: arm,
       runs: ($exacts | map(total("runs") / .items) | median),
       exact: ($exacts | map(total("ns") / .items) | median),
       least: ($exacts | map(total("ns") / .items) | min),
       net: ($exacts | map((total("ns") - $floor * total("runs")) / .items) | median),
       cpu: ($runs | map(.cpu / .items) | median),
       cpu_more: ($runs | map(.cpu / .items - ($off[.round | tostring] | .cpu / .items)) | "\(median | round)+-\(spread | round)"),
       wall: ($runs | map(.wall / .items) | median),
       wall_more: ($runs | map(.wall / .items - ($off[.round | tostring] | .wall / .items)) | "\(median | round)+-\(spread | round)")};
  ($arms | split(" ") | map(times(.))) as $table
| ($table | map({(.arm): .}) | add) as $of
| "ns per work item (with --icount: instructions), medians of \($timed | length / ($table | length)) rounds (exact: \($exact | length / ($table | length))) of \($all | map(.items) | median | round) items",
  (["arm", "runs", "exact", "least", "net", "cpu", "more", "wall", "more"] | row),
  ($table[] | [.arm, ((.runs * 100 | round) / 100), (.exact | round), (.least | round), (.net | round), (.cpu | round),
    .cpu_more, (.wall | round), .wall_more] | row),
  "our programs, exact ns per run: \($exact | per_run("ours") | named)",
  ("sampled", "enqueue" | . as $arm | $exact | per_run($arm) | select(length > 0)
     | "\($arm): \(named)",
       "under pool->lock, an item that is not timed, \($arm): \((.[] | select(.key == "wqt_queue").value) - ($floor | round)); the bound is 80"),
  "wqlat'"'"'s: \($exact | per_run("wqlat") | named); called for nothing: \($floor | round)",
  ("wqlat", "bare", "bpftrace" | select(in($of)) | . as $peer | "ours / \(.): exact \(ratio($of.ours.exact; $of[$peer].exact)), least \(ratio($of.ours.least; $of[$peer].least)), net \(ratio($of.ours.net; $of[$peer].net))"),
  "the bound (ours less than wqlat, exact): \(if $of.ours.exact < $of.wqlat.exact then "held" else "NOT HELD" end) in this run"
' "$results"
