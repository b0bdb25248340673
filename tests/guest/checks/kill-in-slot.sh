# SPDX-License-Identifier: LGPL-2.1-or-later
# kill -9 at each write and rename of a daemon that compares (kill_at.cpp), and in the middle of each window.
# After each kill every setting has its baseline, there is no entry, and the ledger has the pairs that it had,
# each once. (A kill at an fsync finds the same files as one at the call after it.)
# timeout: 3200
. lib.sh

other=$(other_scope)
crypt_c0
settings() { grep -H . "$workqueues"/*/affinity_{scope,strict} /sys/module/workqueue/parameters/default_affinity_scope; }
before=$(settings)
load_c0
# A very small alpha, so that there is no verdict. The ledger keeps the last 64 differences of a comparison.
trial_policy "auto:$other" 'alpha = 0.0000001' 'max_pairs = 2000'
in_place() { scope_is "$wq" "$other"; }
is_dead() { [ "$(systemctl show -P ActiveState wq-tuned)" = failed ]; }
differences() { jq -r '[.entries[].columns[0].last[]] | join(" ")' $ledger 2>/dev/null || true; }
known=""
pair_or_dead() { is_dead || [ "$(status | jq '.daemon.experiments.pairs // 0')" -ge 1 ]; }

armed() { # CALL:N; replaces the drop-in of trial_policy
  drop_in wq-tuned.service <<EOF
[Service]
WatchdogSec=0
Environment=WATCHDOG_USEC=6000000
Restart=no
ExecStart=
ExecStart=/usr/bin/env LD_PRELOAD=/usr/lib/wq-tests/kill-at.so KILL_AT=$1 /usr/sbin/wq-tuned
EOF
  systemctl reset-failed wq-tuned 2>/dev/null || true
}
with_candidate=0
expect_nothing_left() { # WHERE
  local now
  [ "$before" = "$(settings)" ] || fail "$1: left behind: $(diff <(echo "$before") <(settings))"
  [ "$(entries)" = 0 ] || fail "$1: $(entries) entries"
  now=$(differences)
  [ -z "$known" ] || [[ "$now " = "$known "* ]] || fail "$1: the ledger had '$known', and has '$now'"
  known=$now
  ! since_mark | grep -q "$wq: back to 'default'" || with_candidate=$((with_candidate + 1))
}

# A slot, from the start of the daemon to its stop.
for call in write rename; do
  n=0 kills=0 known=""
  rm -f $ledger /run/wq-tuned/pairs.json # the ledger keeps the last 64 differences; each kill adds one or two
  while :; do
    n=$((n + 1))
    [ $n -lt 60 ] || fail "no end: still killed at $call $n"
    armed "$call:$n"
    mark
    systemctl start wq-tuned 2>/dev/null || true
    wait_until 60 pair_or_dead || fail "$call $n: no pairs: $(trial_of "$wq" reason)"
    is_dead || systemctl stop wq-tuned || true
    expect_nothing_left "$call $n"
    case $(systemctl show -P Result wq-tuned) in
      signal) kills=$((kills + 1)) ;;
      success) break ;; # fewer than n such calls
      *) fail "$call $n: ended by $(systemctl show -P Result wq-tuned)" ;;
    esac
  done
  note "$kills kills at $call, $with_candidate so far with the candidate in place; pairs in the ledger: $(ledger_pairs)"
done
[ $with_candidate -ge 2 ] || fail "only $with_candidate kills with the candidate in place"

# Each of these moments lasts for a second or more. (The ledger is written once a minute.)
armed none
measures_candidate() { in_place && sleep 0.5 && in_place; }
measures_baseline() { [ "$(status | jq .daemon.experiments.measuring)" = 1 ] && ! in_place; }
has_unsaved_pairs() { has_pairs "$wq" $((start + 2)); }
for moment in measures_candidate measures_baseline has_unsaved_pairs; do
  systemctl start wq-tuned
  start=$(trial_of "$wq" pairs)
  wait_until 60 $moment || fail "never: $moment"
  mark
  systemctl kill --kill-whom=main --signal=KILL wq-tuned
  wait_until 20 is_dead || fail "$moment: it lives"
  expect_nothing_left "$moment"
  systemctl reset-failed wq-tuned
done

note "-- and it goes on"
# The window that the last kill cut off counts as a pair, and no pair before it is lost.
cut_off=$(jq 'if .running == null then 0 else 1 end' /run/wq-tuned/slot.json 2>/dev/null || echo 0)
pairs=$(known_pairs)
[ "$pairs" -ge $((start + 2)) ] || fail "pairs were lost: $pairs of $((start + 2))"
systemctl start wq-tuned
note "comparisons in the ledger: $(jq -c '[.entries[] | [(.key | del(.partitions)), .columns[0].pairs]]' $ledger)"
check_eq "it knows its pairs" $((pairs + cut_off)) "$(trial_of "$wq" pairs)"
wait_until 60 has_pairs "$wq" $(($(ledger_pairs) + 1)) || fail "it does not go on: $(trial_of "$wq" reason)"
systemctl stop wq-tuned
expect_nothing_left "stop"
expect_no_probes
