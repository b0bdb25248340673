#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A reboot in the middle of a comparison (checks/trial-reboot.sh): reboot.sh STAGE RESULTS [KERNEL]. Two boots with
# the same disk; the first one ends without a stop of anything, which boot.sh reports as a failure.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/common.sh"

stage=${1:?} results=${2:?} kernel=${3:-7.2}
check=trial-reboot
disk=$results/disk

rm -rf "$results"
mkdir -p "$results"
truncate -s 64M "$disk"
boot=(--kernel "$kernel" --smp "8,sockets=8,cores=1,threads=1" --stage "$stage" --timeout 900
  --machine-args "-drive file=$disk,if=none,id=state,format=raw -device nvme,drive=state,serial=state")
# The differences of the pairs of the only comparison, one per line.
differences() { jq -er 'if (.entries | length) == 1 then .entries[0].columns[0].last[] else error("not one comparison") end' "$1"; }

say "the first boot, on $kernel"
"$guest_dir/boot.sh" --results "$results/first" "${boot[@]}" "$check" >"$results/first.log" && die "FAILED: the guest was shut down"
sed '/^@file /d; s/^/  /' "$results/first/$check.out"
expect "how it ended" "QEMU ended early, exit code 0 (in or after $check)" "$(sed -nE 's/.*GUEST FAILED, .*: (QEMU ended .*)/\1/p' "$results/first.log")"
[ ! -e "$results/first/$check.rc" ] || die "FAILED: $check in the first boot"
brought_out "$results/first" "$check" ledger.json >"$results/first.json"
differences "$results/first.json" >"$results/first.txt"
pairs=$(wc -l <"$results/first.txt")
boot_id=$(sed -nE 's/^boot ([0-9a-f-]+):.*/\1/p' "$results/first/$check.out")

say "the second boot"
run_in_guest "$results/second" "$check" "${boot[@]}" --append "wq_tests.pairs=$pairs wq_tests.boot_id=$boot_id"
brought_out "$results/second" "$check" ledger.json >"$results/second.json"
differences "$results/second.json" >"$results/second.txt"
expect "the pairs of the first boot come first" "$(paste -sd' ' "$results/first.txt")" "$(head -n "$pairs" "$results/second.txt" | paste -sd' ')"
