#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# dm-crypt with each scope that makes different pools: ab-dm-crypt.sh DEVICE TARGET. The load is that of the
# Xeon D in the cache_shard series. DEVICE is overwritten.
set -euo pipefail
# shellcheck source=tests/bench/ab-common.sh
. "$(dirname "$0")/ab-common.sh"
device=$1 target=$2

for depth in 1 16; do
  heading "dm-crypt: random writes of 4k, 2 jobs of depth $depth"
  compare "$target" write --sweep -- "${fio[@]}" --filename="$device" --rw=randwrite --bs=4k --iodepth=$depth \
    --ioengine=libaio --direct=1 --numjobs=2
done
