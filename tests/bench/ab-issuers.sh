#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Many issuers of work, and few: ab-issuers.sh DEVICE TARGET, as in the kernel's Documentation/core-api/workqueue.rst,
# "Affinity Scopes and Performance": dm-crypt, 32k of random reads and writes that are verified. DEVICE is written over.
set -euo pipefail
# shellcheck source=tests/bench/ab-common.sh
. "$(dirname "$0")/ab-common.sh"
device=$1 target=$2
cpus=$(nproc)

# There, of 24 CPUs: 24 jobs of depth 64, 8, and 4.
for jobs in "$cpus" $(((cpus + 2) / 3)) $(((cpus + 5) / 6)); do
  heading "$jobs issuers on $cpus CPUs"
  compare "$target" write --arms system,cache,cache:strict -- "${fio[@]}" --filename="$device" --rw=randrw --bs=32k \
    --iodepth=$((64 / jobs > 4 ? 64 / jobs : 4)) --ioengine=libaio --direct=1 --numjobs="$jobs" --verify=sha512
done
