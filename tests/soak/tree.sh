#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Storms on a tree: tree.sh SERVE-TREE workqueues|reload|memory [PERCENT]. The machine itself is not touched.
set -euo pipefail
serve=$1 storm=$2
guest_append=wq_tests.storm=${3:-100}
note() { printf '%s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*"; [ ! -s "$work/log" ] || { echo "the log's end:"; tail -n 5 "$work/log"; }; exit 1; }
# shellcheck source=tests/soak/storm.sh
. "$(dirname "$0")/storm.sh"

work=$(mktemp -d /tmp/wq-tuned-soak.XXXXXX)
export TMPDIR=$work # the tree is made here, so it is removed however the daemon ends
tidy() {
  [ -z "$storm_pid" ] || { kill "$storm_pid" 2>/dev/null && wait "$storm_pid"; } || true
  rm -rf "$work"
}
trap tidy EXIT
mkfifo "$work/events"
export WATCHDOG_USEC=2000000 # a tick each second; ticks give memory back
"$serve" <"$work/events" >"$work/root" 2>"$work/log" &
storm_pid=$!
exec 5>"$work/events"
wait_until() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    kill -0 "$storm_pid" 2>/dev/null || fail "the daemon ended"
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.05
  done
}
wait_until 30 test -s "$work/root" || fail "no tree"
tree=$(cat "$work/root")
workqueues=$tree/sys/devices/virtual/workqueue

# `metric NAME`: prints the last value from the daemon.
metric() { sed -n "s/^wq_tuned_$1 //p" "$tree/srv/wq.prom" 2>/dev/null; }
targets_are() { [ "$(metric "targets{state=\"${2:-set}\"}")" = "$1" ]; } # N [STATE]
entries_are() { [ "$(jq '.entries | length' "$tree/run/wq-tuned/owned.json")" = "$1" ]; }
cpu_ms() { awk -v hz="$(getconf CLK_TCK)" '{print ($14 + $15) * 1000 / hz}' "/proc/$storm_pid/stat"; }
report() { note "figures: $*; CPU $(cpu_ms) ms in all; the log has $(wc -l <"$work/log") lines"; }
wait_until 60 targets_are 2 || fail "the two workqueues that are always there are not set"

# Makes all folders in the staging folder, so that they come and go at once, as in sysfs.
make_set() { # FIRST LAST
  local i
  rm -rf "$work/pattern"
  mkdir -p "$work/pattern" "$tree/staging"
  cp -r "$workqueues/writeback" "$work/pattern/new"
  echo "default (cache)" >"$work/pattern/new/affinity_scope"
  for ((i = $1; i <= $2; i++)); do printf '%s\0' "$tree/staging/kcryptd-254:$((i % 1000))-$i"; done |
    xargs -0 -n 1 cp -r "$work/pattern/new"
}
appear() { (cd "$tree/staging" && find . -mindepth 1 -maxdepth 1 -print0 | xargs -0 mv -t "$workqueues"); }
tell() { head -c "$1" /dev/zero | tr '\0' w >&5; } # N events
vanish() { # [PATTERN]
  mkdir -p "$tree/gone"
  find "$workqueues" -mindepth 1 -maxdepth 1 -name "kcryptd-*${1:-}" -print0 | xargs -0 -r mv -t "$tree/gone"
  rm -rf "$tree/gone"
}
# All workqueues have the planned scope in their files. (`targets_are` checks what the daemon says.)
expect_set() {
  local bad
  bad=$(grep -Lx smt "$workqueues"/*/affinity_scope | head -n 3 || true)
  [ -z "$bad" ] || fail "not set: $bad"
}

# N workqueues come and go, SIZE at a time. In every second round a tenth of them goes before the daemon can
# set it.
come_and_go() { # N SIZE
  local first=1 round=0 left
  while [ "$first" -le "$1" ]; do
    make_set "$first" $((first + $2 - 1))
    appear
    tell "$2"
    left=$2
    if [ $((round++ % 2)) = 1 ]; then vanish 7; fi
    left=$(find "$workqueues" -name 'kcryptd-*' | wc -l)
    wait_until 120 targets_are $((left + 2)) || fail "$(metric 'targets{state="set"}') targets, not $((left + 2))"
    expect_set
    vanish
    tell "$2"
    wait_until 120 entries_are 2 || fail "entries are left"
    wait_until 120 targets_are 2 || fail "targets are left"
    sleep 2 # at least one tick
    sample
    first=$((first + $2))
    case $((first - 1)) in 1000 | 5000 | 10000) note "RssAnon after $((first - 1)): $(rss_anon) kB" ;; esac
  done
}

workqueues() {
  local n before most after lines
  n=$(scaled 10000 400)
  before=$(rss_anon)
  note "RssAnon before: $before kB"
  come_and_go "$n" $((n / 40))
  lines=$(wc -l <"$work/log")
  report "$n workqueues, $((n / 40)) at a time"
  expect_flat
  # One line for each setting, none for a workqueue that went.
  [ "$lines" -le $((n + 10)) ] || fail "$lines lines: $(sed 's/[0-9]\+/N/g' "$work/log" | sort | uniq -c | sort -rn | sed 5q)"

  note "-- all of them at once"
  make_set 1 "$n"
  appear
  tell "$n"
  wait_until 600 targets_are $((n + 2)) || fail "$(metric 'targets{state="set"}') targets, not $((n + 2))"
  expect_set
  most=$(rss_anon)
  vanish
  tell "$n"
  wait_until 600 entries_are 2 || fail "entries are left"
  wait_until 600 targets_are 2 || fail "targets are left"
  report "RssAnon with $n: $most kB, after them $(rss_anon) kB"
  sleep 20 # some ticks
  after=$(rss_anon)
  note "figures: RssAnon 20 s later: $after kB, $before kB before all"
  [ "$after" -le $((before + 512)) ] || fail "what $n targets needed is not given back"
}

# The memory of 1,000 targets between two ticks, some ticks after the last work.
most_idle=2048 # kB
memory() {
  local n=1000
  expect_small() { # STATE [TARGETS]
    wait_until 120 targets_are "${2:-$((n + 2))}" "$1" || fail "not all targets are $1"
    sleep 6
    rss=()
    for _ in {1..7}; do sample; sleep 0.7; done
    report "RssAnon idle, $n targets $1: $(median "${rss[@]}") kB"
    [ "$(median "${rss[@]}")" -le "$most_idle" ] || fail "more than $most_idle kB: ${rss[*]}"
  }
  sleep 6
  note "figures: RssAnon idle with 2 targets: $(rss_anon) kB"
  make_set 1 "$n"
  appear
  tell "$n"
  expect_small set
  expect_set
  sed -i s/smt/auto/ "$tree/etc/wq-tuned/wq-tuned.toml"
  kill -HUP "$storm_pid"
  expect_small waiting $((n + 3)) # and @default
  sed -i s/auto/cache/ "$tree/etc/wq-tuned/wq-tuned.toml"
  kill -HUP "$storm_pid"
  expect_small as-planned
}

lines_are() { [ "$(wc -l <"$work/log")" -ge "$1" ]; }
# Signals that come together are merged, so each waits for the log line of the one before.
reload() {
  local n
  n=$(scaled 1000 48)
  reload_often() {
    local i before
    for ((i = 1; i <= n; i++)); do
      before=$(wc -l <"$work/log")
      kill -HUP "$storm_pid"
      wait_until 60 lines_are $((before + 1)) || fail "reload $i: not a word"
      [ $((i % (n / 8))) != 0 ] || sample
    done
  }
  reload_often
  expect_set
  report "$n reloads"
  expect_flat
  note "-- broken"
  rss=()
  echo 'match = "twice"' >>"$tree/etc/wq-tuned/wq-tuned.toml"
  reload_often
  expect_set
  report "$n reloads of a broken policy"
  expect_flat
  [ "$(wc -l <"$work/log")" -le $((2 * n + 10)) ] || fail "too many lines"
}

"$storm"
kill "$storm_pid"
wait "$storm_pid" || fail "the daemon's exit code is $?"
storm_pid=""
note "passed"
