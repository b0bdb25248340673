#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Prints the output of one check from the results in DIR, and exits with its exit code: report.sh DIR CHECK.
set -euo pipefail
cat "$1/$2.out" 2>/dev/null || echo "(it printed nothing)"
[ -e "$1/$2.rc" ] || { echo "the check did not run to its end"; exit 1; }
rc=$(cat "$1/$2.rc")
[ "$rc" = 0 ] || echo "exit code $rc"
exit "$rc"
