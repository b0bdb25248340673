#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Many and few issuers of work: ab-issuers.sh DEVICE TARGET, as in the kernel's
# Documentation/core-api/workqueue.rst, "Affinity Scopes and Performance": dm-crypt, random reads and writes
# of 32k, verified. DEVICE is overwritten.
set -euo pipefail
# shellcheck source=tests/bench/ab-common.sh
. "$(dirname "$0")/ab-common.sh"
device=$1 target=$2
cpus=$(nproc)

# The document has, on 24 CPUs, 24 jobs of depth 64, then 8 and 4 jobs.
for jobs in "$cpus" $(((cpus + 2) / 3)) $(((cpus + 5) / 6)); do
  heading "$jobs issuers on $cpus CPUs"
  compare "$target" write --arms system,cache,cache:strict -- "${fio[@]}" --filename="$device" --rw=randrw --bs=32k \
    --iodepth=$((64 / jobs > 4 ? 64 / jobs : 4)) --ioengine=libaio --direct=1 --numjobs="$jobs" --verify=sha512
done
