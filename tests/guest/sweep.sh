#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `wq-tunectl bench` over boots with several sizes of cache_shard: sweep.sh STAGE RESULTS [KERNEL] (7.1 or
# later). RESULTS keeps a file for each size, the table, and a folder for each boot.
#
# One LLC of 16 cores without threads, so that the sizes make 4, 2, 1 and 1 shards. An emulated machine has the pools
# and the kworkers of a real one, but its MB/s depend on the CPUs (about two) that run the emulator.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/common.sh"

stage=${1:?} results=${2:?} kernel=${3:-7.2}
cores=16
sizes=(4 8 16 32)
export COLUMNS=200 NO_COLOR=1 # so that each row is one line

rm -rf "$results"
mkdir -p "$results"
files=()
for size in "${sizes[@]}"; do
  say "cache_shard_size $size"
  run_in_guest "$results/boot-$size" bench-sweep --kernel "$kernel" --smp $cores,sockets=1,cores=$cores,threads=1 \
    --stage "$stage" --append "workqueue.cache_shard_size=$size" --timeout 900
  file=$results/shard-$size.json
  brought_out "$results/boot-$size" bench-sweep bench.json >"$file"
  expect "the file of size $size" "$size" "$(jq .host.cache_shard_size "$file")"
  files+=("$file")
done

jq -r '.host.cache_shard_size as $size | .scopes[] | [$size, .scope, .median.pools, .median.kworkers, .median.items_per_s] | @tsv' \
  "${files[@]}" | tee "$results/table.txt"
rows() { awk '$2 == "cache_shard"' "$results/table.txt"; }
expect "rows of cache_shard" "${#sizes[@]}" "$(rows | wc -l)"
for i in "${!sizes[@]}"; do
  size=${sizes[i]}
  expect "shards of $size cores" "$(((cores + size - 1) / size))" "$(rows | awk -v size="$size" '$1 == size { print $3 }')"
done
expect "rows without a kworker" 0 "$(rows | awk '$4 + 0 < 1' | wc -l)"
