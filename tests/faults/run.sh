#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The long form of fault-tests: every call in every way, a kill at every system call, a cut at every byte.
# A few processes beside each other, on temporary trees alone. Usage: run.sh BUILD
set -euo pipefail
program=$1/tests/faults/fault-tests
logs=$1/faults
mkdir -p "$logs"

filters=('*Kills*:Cut*:*Power*:Lives*')
for scenario in trials default foreign paused unsupported; do filters+=("*Calls*/$scenario"); done
for i in "${!filters[@]}"; do printf '%s\0' "$logs/$i.log" "${filters[i]}"; done |
  WQ_TUNED_FAULTS=all xargs -0 -n 2 -P "$(nproc)" sh -c \
    '"$0" --gtest_filter="$2" >"$1" 2>&1 || echo "FAILED: see $1" >>"$1"' "$program" || true
grep -ahE '^[a-z]+: [0-9]+ |^FAILED|Failure|PASSED' "$logs"/*.log
if grep -aq '^FAILED' "$logs"/*.log; then exit 1; fi
