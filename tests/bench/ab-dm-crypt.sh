#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# dm-crypt under every scope that makes other pools: ab-dm-crypt.sh DEVICE TARGET, as on the Xeon D of the
# cache_shard series. DEVICE is written over.
set -euo pipefail
# shellcheck source=tests/bench/ab-common.sh
. "$(dirname "$0")/ab-common.sh"
device=$1 target=$2

for depth in 1 16; do
  heading "dm-crypt: random writes of 4k, 2 jobs of depth $depth"
  compare "$target" write --sweep -- "${fio[@]}" --filename="$device" --rw=randwrite --bs=4k --iodepth=$depth \
    --ioengine=libaio --direct=1 --numjobs=2
done
