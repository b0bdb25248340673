# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The jobs of `./dev test --all`. `dev` sources this file and has the functions that do the work.
#
# A job ends with its row in docs/checks.md: when, which commit, on which machine, how many tests passed, failed and
# were skipped. `--part N/M` runs the N-th of M parts, which take about the same time, so that a machine that
# is there for an hour or two can run one; JOB... runs these. A row is replaced when its job runs again; the others stay.

table=docs/checks.md
logs=build/all

# The last commit that changes more than documents: what a row names. Rows may be committed between two parts.
code=(. ':!*.md' ':!docs')
code_commit() { git log -1 --format=%h --abbrev=12 -- "${code[@]}"; }

# "SECONDS NAME" of each job, the longest first: what it took by its row, else a guess; of a boot, the most that it may take.
# By the rows that the code's commit had: all parts of it divide the jobs alike.
all_jobs() {
  {
    printf '%s\n' '100 lint' '1500 unit-asan' '900 unit-release' '1200 tidy' '1500 unit-arm64' '3600 guests-arm64' \
      '300 browser' '1500 debian-trixie' '1200 package-trixie' '600 rpm' '4800 fuzz' '1800 soak-faults' '900 soak-tree'
    ctest --test-dir build/release -L '^guest(-all)?$' --show-only=json-v1 | jq -r '
      .tests[] | select(.name | test("^guest[.].*[.]boots?$")) |
      select(any(.command[]; endswith("/report.sh")) | not) | .command as $c | ($c | index("--timeout")) as $at |
      "\(if $at then $c[$at + 1] else 3000 end) \(.name | sub("[.]boots?$"; ""))"'
  } | awk 'FILENAME != "-" { if ($1 == "|") took[$2] = 60 * $16; next } { print ($2 in took ? took[$2] : $1), $2 }' <(git show "$(code_commit):$table") - | sort -k1,1nr -k2
}

# Of the jobs in stdin, the names of those in part N of M: each job goes to the part that has least so far.
part() { # N M
  awk -v n="$1" -v m="$2" '
    { least = 1
      for (i = 2; i <= m; i++) if (sum[i] < sum[least]) least = i
      sum[least] += $1
      if (least == n) print $2 }'
}

# Shows what CTest wrote into build/LOG.log, where `counts` looks for it.
with_log() { # LOG COMMAND...
  local log=build/$1.log rc=0
  shift
  "$@" || rc=$?
  [ $rc != 0 ] || cat "$log" # after a failure the command has shown it
  return $rc
}

run_job() { # NAME
  case $1 in
    guest.*)
      case $1 in
        guest.old-6.1 | guest.*-6.18 | guest.*-7.[013]) tests/guest/fetch.sh "${1##*-}" ;;
        guest.distro-*) tests/guest/fetch.sh --distro "${1##*-}" ;;
        guest.package-trixie) tests/guest/fetch.sh --trixie 6.12 ;;
      esac && ctest --test-dir build/release -L '^guest' -R "^${1//./\\.}\\." --no-tests=error --output-on-failure
      ;;
    unit-arm64) with_log unit-arm64 arm64_unit_tests ;;
    unit-*) build "${1#unit-}" -DWQ_TUNED_UNIT_TESTS=ON && with_log "$1" unit_tests "${1#unit-}" ;;
    tidy) tidy daemon ;; # without tests/unit, which takes half an hour more (`./dev tidy`)
    guests-arm64) arm64_guests ;;
    lint) lint ;;
    browser) # the test skips itself without a browser, which is installed here
      ctest --test-dir build/release -L '^browser$' --no-tests=error --output-on-failure &&
        ! grep -q '(Skipped)' build/release/Testing/Temporary/LastTest.log
      ;;
    debian-*) debian_unit_tests "${1#debian-}" ;;
    package-*) package --suite "${1#package-}" ;;
    rpm) ./dev rpm ;;
    fuzz) ./dev fuzz ;;
    soak-faults) build release -DWQ_TUNED_UNIT_TESTS=ON && ctest --test-dir build/release -R '^soak[.]faults$' --no-tests=error --output-on-failure ;;
    soak-tree) ctest --test-dir build/release -L '^guest-all$' -R '^soak[.]tree' --no-tests=error --output-on-failure ;;
  esac
}

# "PASSED FAILED SKIPPED" of CTest's output, with the cases of GoogleTest; "- - -" for a job that has no tests of CTest.
counts() { # LOG
  awk '/^cases of GoogleTest:/ { ran = $4 + $6 + $8; bad = $6; cases = $8 } # once printed, once in the log
    / tests passed, [0-9]+ tests? failed out of [0-9]+/ { failed += $(NF - 5); total += $NF; any = 1 }
    /^[0-9 ]+\/[0-9]+ Test .*\*\*\*Skipped/ { skipped++ }
    END { skipped += cases; failed += bad; total += ran; if (any) print total - failed - skipped, failed + 0, skipped + 0; else print "- - -" }' "$1"
}

record() { # NAME RESULT SECONDS COMMIT
  local passed failed skipped cpu
  read -r passed failed skipped < <(counts "$logs/$1.log")
  cpu=$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo)
  {
    sed '/^|/d' "$table"
    echo '| job | result | date | commit | passed | failed | skipped | minutes | machine |'
    echo '|---|---|---|---|---|---|---|---|---|'
    {
      sed -n '/^| \(job \|---\)/d; /^|---/d; /^|/p' "$table" | grep -vF "| $1 |" || true
      printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$1" "$2" "$(date -u +%F)" "$4" \
        "$passed" "$failed" "$skipped" "$((($3 + 59) / 60))" "$(nproc) CPUs, ${cpu:-unknown}, guests emulated"
    } | LC_ALL=C sort
  } >"$table.new"
  mv "$table.new" "$table"
}

test_all() { # N/M, or JOB...
  local which=$1 list job jobs result started commit bad=0
  commit=$(code_commit)$([ -z "$(git status --porcelain -- "${code[@]}")" ] || echo -dirty) # what is built now
  (packages+=(chromium fonts-dejavu-core) && deps)
  build release -DWQ_TUNED_UNIT_TESTS=OFF
  tests/guest/fetch.sh 6.12 7.2
  fetch_prometheus
  list=$(all_jobs) || die "CTest does not name the boots"
  if [[ $which == */* ]]; then
    if ! [[ $which =~ ^[1-9][0-9]*/[1-9][0-9]*$ ]] || [ "${which%/*}" -gt "${which#*/}" ]; then die "--part N/M: not '$which'"; fi
    mapfile -t jobs < <(part "${which%/*}" "${which#*/}" <<<"$list")
  else
    jobs=("$@")
    for job; do grep -q " ${job//./\\.}\$" <<<"$list" || die "no job '$job'; there are: $(cut -d' ' -f2 <<<"$list" | xargs)"; done
  fi
  [ ${#jobs[@]} -gt 0 ] || die "part $which has no job"
  mkdir -p "$logs"
  for job in "${jobs[@]}"; do
    say "$job"
    started=$SECONDS result=passed
    (run_job "$job") >"$logs/$job.log" 2>&1 || { result=FAILED bad=1; tail -n 40 "$logs/$job.log"; }
    record "$job" $result $((SECONDS - started)) "$commit"
    grep -F "| $job |" "$table"
  done
  return $bad
}
