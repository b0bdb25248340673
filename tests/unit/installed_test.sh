#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests that installed files agree with the code (catalog, alerts, version), and that the unit is sandboxed tightly.
# tests/manuals.sh looks at the manuals.
# Usage: installed_test.sh SOURCE-DIR UNIT
set -uo pipefail
unit=$(realpath "$2")
cd "$1" || exit
failed=0 unchecked=0
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }
same() { # WHAT WANTED FOUND
  [ -n "$2" ] || complain "$1: nothing found in the code"
  [ "$2" = "$3" ] || complain "$1; < is the code: $(diff <(echo "$2") <(echo "$3"))"
}

same "MESSAGE_IDs of the catalog" \
  "$(sed -nE 's/^ *"([0-9a-f]{32})",.*/\1/p' daemon/base/journal.cpp | sort)" \
  "$(sed -nE 's/^-- ([0-9a-f]{32})$/\1/p' conf/wq-tuned.catalog | sort)"
metrics=$(grep -ohE '"wq_tuned_[a-z_]+"' daemon/service/metrics.cpp | tr -d '"' | sort)
used() { # FILE...: prints the metrics that the files use, except recorded ones
  sed -E 's/[a-z_]+:wq_tuned_[a-z_]+:[a-z0-9]+//g' "$@" | grep -oE 'wq_tuned_[a-z_]+' | sort -u
}
found=$(used conf/prometheus/*.rules.yml conf/grafana/wq-tuned.json) || complain "rules or dashboard: not readable, or without metrics"
unknown=$(comm -13 <(echo "$metrics") <(echo "$found"))
[ -z "$unknown" ] || complain "rules or dashboard ask for what there is not: $unknown"
alerts=$(sed -nE 's/^ *- alert: //p' conf/prometheus/wq-tuned.rules.yml | sort)
same "runbooks of the alerts" "$alerts" "$(sed -nE 's|^ *runbook: "docs/using.md, section (.*)"$|\1|p' conf/prometheus/wq-tuned.rules.yml | sort)"
same "sections on alerts in docs/using.md" "$alerts" "$(sed -n '/^## Alerts$/,/^## /s/^### //p' docs/using.md | sort)"
version=$(sed -nE 's/^project\(wq-tuned VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt)
same "the version in debian/changelog" "$version" "$(sed -nE '1s/^wq-tuned \(([^)~]*).*/\1/p' debian/changelog)"
same "the version in rpm/wq-tuned.spec" "$version" "$(sed -nE 's/^Version: +//p' rpm/wq-tuned.spec)"
same "the version in CHANGELOG.md" "$version" "$(sed -nE 's/^## ([0-9.]+).*/\1/p' CHANGELOG.md | head -n 1)"

if command -v systemd-analyze >/dev/null; then
  score=$(systemd-analyze security --offline=true --no-pager "$unit" | sed -nE 's/.*exposure level.*: ([0-9.]+) .*/\1/p')
  awk -v s="$score" 'BEGIN {exit !(s != "" && s <= 1.4)}' || complain "systemd-analyze security: exposure '$score' of $unit, not at most 1.4"
else
  echo "systemd-analyze is not installed: the unit's exposure was not looked at"
  unchecked=77
fi
[ $failed = 0 ] || exit 1
exit $unchecked
