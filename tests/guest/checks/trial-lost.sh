# SPDX-License-Identifier: LGPL-2.1-or-later
# A candidate is not called `improved` because it is usually a little better, nor because the windows are lost
# in which it would have been seen. Beside each of these loads a control shows that the load could have led to
# `improved`: the same without what makes it bad.
# timeout: 1800
. lib.sh

other=$(other_scope)
crypt_c0
# The judged counter is a file: 100 while the baseline is in place. While the candidate is in place, it is the
# first word of `costs` in nine windows, and the second word in the tenth. There are no guards, since a guard
# could only veto `improved`.
costs=/run/wq-tests/costs lost=/run/wq-tests/lost
ordinary=/run/wq-tests/ordinary longest=/run/wq-tests/longest # ms for which the candidate was in place
mkfifo /run/wq-tests/never

# Counts the candidate's windows by the time for which it is in place: a window takes a second or more (more
# where a write takes more than 10 ms), the lead before a slot 200 ms.
# With `lose`, every second window comes late: the daemon stands still while the candidate is in place, until
# 1.2 times the longest ordinary window have passed, and 500 ms. It must not stand longer: a daemon that hangs
# leaves the candidate in place until the watchdog ends it, and that is not what is checked here.
follow_scope() { # [lose]
  local word since=0 now windows=0 usual tenth value most ordinary_most late=no before=yes pid
  read -r usual tenth <$costs
  read -r ordinary_most <$ordinary
  while :; do
    read -r word _ <"$workqueues/$wq/affinity_scope"
    now=$((${EPOCHREALTIME/./} / 1000)) # ms
    if [ "$word" = "$other" ]; then
      [ "$since" != 0 ] || since=$now
      value=$usual
      [ $((windows % 10)) != 9 ] || value=$tenth
      echo "$value" 1<>$cost
      if [ "${1:-}" = lose ] && [ $before$late = nono ] && [ $((now - since)) -ge 600 ]; then
        pid=$(pidof wq-tuned)
        kill -STOP "$pid"
        while [ $((${EPOCHREALTIME/./} / 1000 - since)) -lt $((ordinary_most * 6 / 5 + 500)) ]; do read -rt 0.1 _ || true; done
        kill -CONT "$pid"
        late=yes
        echo $((now - since)) >>$lost
      fi
    else
      echo 100 1<>$cost
      if [ "$since" != 0 ] && [ $((now - since)) -ge 600 ]; then
        windows=$((windows + 1))
        read -r most <$longest
        [ $((now - since)) -le "$most" ] || echo $((now - since)) >$longest
        if [ $late = no ] && [ $((now - since)) -gt "$ordinary_most" ] && [ "$ordinary_most" -lt 5000 ]; then
          ordinary_most=$((now - since))
          echo $ordinary_most >$ordinary
        fi
        before=$late late=no
      fi
      since=0
    fi
    read -rt 0.02 _ || true
  done <>/run/wq-tests/never
}
echo 1500 >$ordinary
follower="" load=""
put_back() {
  [ -z "$follower" ] || kill "$follower" 2>/dev/null || true
  pkill -CONT -x wq-tuned || true
  load_off
  rm -f /run/wq-tests/never
}
trap put_back EXIT

# `judge_load COSTS [lose]`: a daemon that knows nothing, until its first verdict.
judge_load() {
  echo "$1" >$costs
  echo 100 >$cost
  echo 0 >$longest
  : >$lost
  follow_scope "${@:2}" &
  follower=$!
  systemctl start wq-tuned
  wait_until 700 ended 1 || fail "no verdict: $(trial_of "$wq" reason)"
}
end_load() {
  note "the candidate was in place for $(cat $longest) ms at most"
  kill $follower # before the kept candidate goes, which was no window
  wait $follower 2>/dev/null || true
  follower=""
  systemctl stop wq-tuned
  rm $verdicts $ledger
}
column() { jq -r ".entries[0].columns[0] | $1" $ledger; }
# The pairs of the verdict are in the ledger, with their e-values.
expect_verdict() { # VERDICT PAIRS
  on_disk() { [ "$(ledger_pairs)" -ge "$(verdict pairs)" ]; }
  wait_until 10 on_disk || fail "$(ledger_pairs) pairs in the ledger"
  note "$(column '"\(.pairs) pairs: E of better \([.better[] | exp] | add / 7), of worse \([.worse[] | exp] | add / 7), costs \(.reference_cost) and \(.candidate_cost)"')"
  note "in percent: $(column '[.last[] | 100 * (exp - 1) | round | tostring] | join(" ")')"
  check_eq "the verdict" "$1" "$(verdict verdict)"
  [ "$(verdict pairs)" -ge "$2" ] || fail "only $(verdict pairs) pairs"
  check_eq "comparisons, and their e-values" "1 7 7" "$(jq -r '.entries | length' $ledger) $(column '[.better, .worse] | map(length) | join(" ")')"
}
expect_kept() {
  expect_verdict improved 16
  wait_until 10 state_is "$wq" kept || fail "state $(target "$wq" state)"
  expect_scope "$wq" "$other"
}
expect_undecided() { # PAIRS
  expect_verdict undecided "$1"
  check_eq "the state" waiting "$(target "$wq" state)"
  expect_scope "$wq" default
  ! wait_until 20 in_place || fail "the candidate is in place"
}
pairs_with() { column "[.last[] | select($1)] | length"; }
load_on c0
trial_policy "auto:$other" "counters = [\"file:$cost\"]" 'guards = []'

note "-- 2% better in nine slots of ten, and 50% worse in the tenth"
judge_load "098 150"
expect_undecided 64
better=$(pairs_with '. < 0') worse=$(pairs_with '. > 0.3')
if [ "$worse" -lt 5 ] || [ "$worse" -gt 8 ] || [ "$better" -lt 54 ]; then fail "that is another load: $better better, $worse worse"; fi
end_load

note "-- without the tenth"
judge_load "098 098"
expect_kept
end_load

trial_policy "auto:$other" "counters = [\"file:$cost\"]" 'guards = []' 'max_pairs = 32'
note "-- 20% better"
judge_load "080 080"
expect_kept
end_load

note "-- the same, but half of its windows are lost"
judge_load "080 080" lose
expect_undecided 32
note "$(wc -l <$lost) windows were made late, $(status | jq .daemon.experiments.windows_lost) were lost; ordinary ones took $(cat $ordinary) ms at most"
# A window is not lost if the daemon stood still before its counted part began. Without the lost ones, the
# others would be enough for `improved`, as above.
[ "$(pairs_with '. > 0')" -ge 8 ] || fail "too few windows were lost"
check_eq "restarts" 0 "$(systemctl show -P NRestarts wq-tuned)"
# follow_scope stops the daemon for 1.2 times $ordinary and 500 ms. Then the daemon has 4 s, because an emulator writes slowly.
[ "$(cat $longest)" -le $(($(cat $ordinary) * 6 / 5 + 500 + 4000 * ${patience:-1})) ] || fail "the candidate was in place for $(cat $longest) ms"
end_load
