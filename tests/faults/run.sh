#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The long form of fault-tests: each call fails in each way, a kill at each system call, a cut at each byte.
# Uses only temporary trees. Each scenario of the calls has its own process. Usage: run.sh BUILD
set -euo pipefail
program=$1/tests/faults/fault-tests
logs=$1/faults
rm -rf "$logs"
mkdir -p "$logs"

part() { # NAME FILTER
  WQ_TUNED_FAULTS=all "$program" --gtest_filter="$2" >"$logs/$1.log" 2>&1 || echo "FAILED: $1" >>"$logs/failed"
  ! grep -q "Running 0 tests" "$logs/$1.log" || echo "FAILED: $1 is no test" >>"$logs/failed"
}

for scenario in trials default foreign paused unsupported; do part "calls-$scenario" "*Calls*/$scenario" & done
part kills-power '*Kills*:Cut*:*Power*:Lives*' &
wait
grep -ahE '^[a-z]+: [0-9]+ |Failure' "$logs"/*.log || true
[ ! -e "$logs/failed" ] || { cat "$logs/failed"; exit 1; }
