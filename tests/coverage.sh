#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Measures the coverage of daemon/ with the built preset `coverage`. First run `unit`, which begins a new
# report; then `guest` for each boot, with the checks of that boot; then `report`, which adds up all counts.
#   coverage.sh unit | guest KERNEL [--icount] CHECK... | report
# With --icount (tests/guest/boot.sh) time limits do not depend on the speed of this machine, but work takes
# ten times as long. Writes into build/coverage/report: unit.json and both.json (of gcovr), index.html,
# summary.md (tests/COVERAGE.md has a copy of the latest), unreached.txt (functions) and unreached-lines.txt.
# Branches that only an exception takes are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/coverage
report=$build/report

begin() { # NAME
  mkdir -p "$report/$1"
  {
    git describe --always --dirty --exclude='*'
    { git rev-parse HEAD:daemon; git diff HEAD -- daemon; } | sha256sum # counts of different sources cannot be added up
  } >"$report/$1.commit"
}

collect() { # NAME: makes NAME.json from the counts (.gcda) in the folder NAME
  (cd $build && find daemon -name '*.gcno' -print0 | cpio --null --quiet -pdu "$OLDPWD/$report/$1")
  gcovr --root . --filter daemon/ --exclude-throw-branches --exclude-unreachable-branches -j "$(nproc)" \
    --json "$report/$1.json" "$report/$1"
}

# All unit tests in one process, because each process that ends adds up the counts of all files again.
unit() {
  local failed=()
  rm -rf $report # remove the results of earlier runs
  begin unit
  find $build -name '*.gcda' -delete
  $build/tests/unit/unit-tests --gtest_brief=1 >$report/unit.log 2>&1 || mapfile -t failed < <(
    sed -n 's/^\[  FAILED  \] \([^ ,]*\).*/\1/p' $report/unit.log | sort -u; tail -n 1 $report/unit.log)
  ctest --test-dir $build -L unit -R '^(cli|completions|installed|manual)' --output-on-failure >>$report/unit.log ||
    mapfile -t -O ${#failed[@]} failed < <(sed -n '/^The following tests FAILED:/,$s/^\t//p' $report/unit.log)
  echo "unit tests: $(sed -n 's/^\[==========\] \([0-9]* tests\).*/\1/p' $report/unit.log)${failed[*]:+, FAILED: ${failed[*]}}" >$report/unit.run
  (cd $build && find daemon -name '*.gcda' -print0 | cpio --null --quiet -pd "$OLDPWD/$report/unit")
  collect unit
}

# In the guest every program, also the sandboxed daemon, writes its counts below GCOV_PREFIX; the last check
# copies them to the host. A program that SIGKILL ends writes none.
guest() { # KERNEL [--icount] CHECK...
  local kernel=$1 stage=$build/stage-coverage results=$build/guest-coverage failed=() drop_in unit check depth name
  shift
  name=guest-$(find $report -maxdepth 1 -name 'guest-*.commit' | wc -l)
  begin "$name"
  tests/guest/stage.sh $build $stage >/dev/null
  strip --strip-debug $stage/usr/bin/wq-tunectl $stage/usr/sbin/wq-tuned
  mkdir -p $stage/usr/lib/tmpfiles.d $stage/etc/systemd/system.conf.d
  echo 'd /run/gcov 0777' >$stage/usr/lib/tmpfiles.d/coverage.conf
  depth=$(tr -cd / <<<"$PWD/$build" | wc -c)
  printf '[Manager]\nDefaultEnvironment=GCOV_PREFIX=/run/gcov GCOV_PREFIX_STRIP=%s\n' "$depth" \
    >$stage/etc/systemd/system.conf.d/coverage.conf
  for unit in wq-tuned wq-tuned-pods wq-tuned-restore; do
    drop_in=$stage/usr/lib/systemd/system/$unit.service.d
    mkdir -p "$drop_in"
    printf '[Service]\nReadWritePaths=/run/gcov\n' >"$drop_in/coverage.conf"
  done
  tests/guest/boot.sh --kernel "$kernel" --smp 8,sockets=8,cores=1,threads=1 --stage $stage --results $results \
    --append wq_tests.patience=3 --timeout 3400 "$@" coverage-out || failed=("the boot")
  for check in "$@"; do [[ $check = --* ]] || [ "$(cat "$results/$check.rc" 2>/dev/null)" = 0 ] || failed+=("$check"); done
  [ -s $results/coverage-out.out ] || { echo "$*: the guest brought nothing out: it is not counted"; rm "$report/$name.commit"; return 0; }
  base64 -d $results/coverage-out.out | tar -xzf - --warning=no-timestamp -C $report/"$name"
  echo "guest $kernel: $*${failed[*]:+, FAILED, and counted as far as they came: ${failed[*]}}" >$report/"$name".run
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

unreached_lines() { # JSON: FILE:LINE and its text
  jq -r '.files[] | .file as $f | .lines[] | select((.["gcovr/noncode"] | not) and .count == 0) | "\($f) \(.line_number)"' "$1" |
    while read -r file line; do echo "$file:$line $(sed -n "${line}p" "$file")"; done
}

# Adds up the counts first and runs gcovr once, because gcovr numbers the branches of two runs differently.
report() {
  local runs=("$report"/unit.run "$report"/guest-*.run) run
  [ -e "${runs[1]}" ] || runs=("${runs[0]}")
  [ "$(tail -qn 1 "${runs[@]/%run/commit}" | sort -u | wc -l)" = 1 ] ||
    { echo "these ran with different sources: $(head "${runs[@]/%run/commit}")"; return 1; }
  rm -rf $report/both
  cp -r $report/unit $report/both
  for run in "${runs[@]:1}"; do
    gcov-tool merge -o $report/sum $report/both "${run%.run}" 2>$report/merge.log || { cat $report/merge.log; return 1; }
    rm -r $report/both
    mv $report/sum $report/both
  done
  collect both
  gcovr --root . -a $report/both.json --html-details $report/index.html
  {
    for run in "${runs[@]}"; do echo "commit $(head -n 1 "${run%run}commit"): $(cat "$run")"; done
    echo "$(date -u +%F), GCC $(gcc -dumpfullversion)"
    echo
    table $report/unit.json $report/both.json
  } >$report/summary.md
  unreached $report/unit.json >$report/unreached-by-unit.txt
  unreached $report/both.json >$report/unreached.txt
  unreached_lines $report/both.json >$report/unreached-lines.txt
  cat $report/summary.md
  echo "functions that nothing reaches: $(wc -l <$report/unreached.txt), that unit tests do not: $(wc -l <$report/unreached-by-unit.txt) (in $report)"
}

"$@"
