#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What of daemon/ the tests reach, from the preset `coverage`, which is built: unit tests first, then the checks
# named here in one boot of a guest, then both together.
#   coverage.sh unit | guest KERNEL CHECK... | report
# Into build/coverage/report: unit.json and guest.json (gcovr's), index.html, summary.md (tests/COVERAGE.md has
# the latest that was kept) and unreached.txt (functions). Branches that only an exception takes are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/coverage
report=$build/report
mkdir -p $report

collect() { # FOLDER NAME: of the notes (.gcno) and counts (.gcda) in FOLDER
  gcovr --root . --filter daemon/ --exclude-throw-branches --exclude-unreachable-branches -j "$(nproc)" \
    --json "$report/$2.json" "$1"
}

unit() {
  find $build -name '*.gcda' -delete
  # In one process: each that ends adds up the counts of all files anew.
  $build/tests/unit/unit-tests --gtest_brief=1 >$report/unit.log 2>&1 || grep -a FAILED $report/unit.log || true
  ctest --test-dir $build -L unit -R '^(cli|completions|installed|manual)' --output-on-failure >$report/scripts.log ||
    tail -n 15 $report/scripts.log
  collect $build/daemon unit
}

# In the guest every program writes its counts below GCOV_PREFIX, the sandboxed daemon too; a check brings
# them out. A daemon that is killed writes none.
guest() { # KERNEL CHECK...
  local kernel=$1 stage=$build/stage-coverage results=$build/guest-coverage drop_in unit
  shift
  tests/guest/stage.sh $build $stage >/dev/null
  strip --strip-debug $stage/usr/bin/wq-tunectl $stage/usr/sbin/wq-tuned
  mkdir -p $stage/usr/lib/tmpfiles.d $stage/etc/systemd/system.conf.d
  echo 'd /run/gcov 0777' >$stage/usr/lib/tmpfiles.d/coverage.conf
  printf '[Manager]\nDefaultEnvironment=GCOV_PREFIX=/run/gcov\n' >$stage/etc/systemd/system.conf.d/coverage.conf
  for unit in wq-tuned wq-tuned-restore; do
    drop_in=$stage/usr/lib/systemd/system/$unit.service.d
    mkdir -p "$drop_in"
    printf '[Service]\nReadWritePaths=/run/gcov\n' >"$drop_in/coverage.conf"
  done
  tests/guest/boot.sh --kernel "$kernel" --smp 8,sockets=8,cores=1,threads=1 --stage $stage --results $results \
    --timeout 3000 "$@" coverage-out || echo "the boot failed; what it brought out is counted"
  rm -rf $report/guest
  mkdir -p $report/guest
  base64 -d $results/coverage-out.out | tar -xzf - -C $report/guest
  (cd $build && find daemon -name '*.gcno' -print0 | cpio --null --quiet -pd "$OLDPWD/$report/guest$PWD")
  collect $report/guest guest
}

# Lines, branches and functions of each folder.
table() { # UNIT.json BOTH.json
  jq -rs '
    def share($n; $of): if $of == 0 then "-" else "\(1000 * $n / $of | round / 10)%" end;
    def counts: {
      lines: [.[].lines[] | select(.["gcovr/noncode"] | not) | .count],
      branches: [.[].lines[] | select(.["gcovr/noncode"] | not) | .branches[] | select(.throw | not) | .count],
      functions: [.[] | .functions // [] | .[] | .execution_count]};
    def cells: [.lines, .branches, .functions][] | "\(share(map(select(. > 0)) | length; length)) of \(length)";
    def folders: [.files[] | select(.file | endswith(".bpf.c") | not) | . + {folder: (.file | split("/") | .[:-1] | join("/"))}];
    (.[0] | folders) as $unit | (.[1] | folders) as $both |
    "| folder | lines, unit tests | lines, all | branches | functions |", "|---|---|---|---|---|",
    (($both | group_by(.folder)[]), $both | (if map(.folder) | unique | length == 1 then .[0].folder else null end) as $f |
      ($unit | map(select($f == null or .folder == $f)) | counts | .lines) as $u |
      "| \($f // "all") | \(share($u | map(select(. > 0)) | length; $u | length)) | \([counts | cells] | join(" | ")) |")
  ' "$@"
}

unreached() { # JSON
  jq -r '.files[] | .file as $f | .functions // [] | .[] | select(.execution_count == 0) | "\($f):\(.lineno) \(.name)"' "$1" | c++filt
}

report() {
  local both=(-a "$report/unit.json")
  [ ! -e $report/guest.json ] || both+=(-a "$report/guest.json")
  gcovr --root . "${both[@]}" --json $report/both.json --html-details $report/index.html
  {
    echo "commit $(git rev-parse --short HEAD), $(date -u +%F), GCC $(gcc -dumpfullversion)"
    echo
    table $report/unit.json $report/both.json
  } >$report/summary.md
  unreached $report/unit.json >$report/unreached-by-unit.txt
  unreached $report/both.json >$report/unreached.txt
  cat $report/summary.md
  echo "functions that nothing reaches: $(wc -l <$report/unreached.txt), that unit tests do not: $(wc -l <$report/unreached-by-unit.txt) (in $report)"
}

"$@"
