# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 1500
# What status says that a scope is worth is what stopping the daemon costs, measured afterwards in turns.
. lib.sh
dir=/run/wq-tests/worth
mkdir -p $dir

crypt_c0
load_c0
# Set first, so that all its pairs count for what it is worth. (After `improved` there is one per `recheck`.)
# The shipped windows: shorter ones have more of what follows a switch, which stopping does once.
window=2s washout=500ms trial_policy plan 'max_pairs = 24' 'guards = []'
systemctl start wq-tuned
worth() { status | jq -r --arg key "$1" '.worth.classes[0][$key]'; }
measured() { [ "$(worth pairs)" -ge 16 ] 2>/dev/null; }
wait_until 600 measured || fail "$(worth pairs) pairs: $(trial_of "$wq" reason)"
wq-tunectl pause # lasts through restarts: no window runs in the turns
idle() { ! state_is "$wq" comparing; }
wait_until 60 idle || fail "a slot runs while paused"
status | jq '.worth' >$dir/worth
note "status says: $(jq -c '.classes[0] | [.scope, .effect_percent, .interval_percent, .pairs]' $dir/worth)"

# The mean latency of 4 s, by the same counter, in the project's format of pairs.
latency() {
  /usr/lib/wq-tests/count-work "$wq" 4 >$dir/count 2>$dir/err || fail "count-work: $(cat $dir/err)"
  jq -er '.windows[0] | select(.items > 100) | .latency' $dir/count || fail "too few items: $(cat $dir/count)"
}
turn() { # ARM
  if [ "$1" = candidate ]; then
    systemctl start wq-tuned
    wait_until 10 scope_is "$wq" "$(jq -r '.classes[0].scope' $dir/worth)" || fail "it holds '$(scope_of "$wq")'"
  else
    systemctl stop wq-tuned
    wait_until 10 scope_is "$wq" default || fail "it holds '$(scope_of "$wq")'"
  fi
  sleep 1
  echo "stop,$pair,$1,latency,$(latency)" >>$dir/pairs.csv
}
echo "trial,pair,arm,counter,value" >$dir/pairs.csv
for pair in $(seq 12); do
  if [ $((RANDOM % 2)) = 0 ]; then
    turn candidate
    turn baseline
  else
    turn baseline
    turn candidate
  fi
done
systemctl stop wq-tuned
wq-tunectl resume 2>/dev/null || true
wq-tunectl judge --json $dir/pairs.csv >$dir/judged
note "stopping: $(jq -c '[.effect_percent, .interval_percent, .pairs]' $dir/judged)"
# judge's effect is a median with an interval that covers it in 95%; the other is a mean. They agree if they overlap.
check_eq "both intervals overlap" true "$(jq -s '.[0].classes[0].interval_percent as [$low, $high] | .[1] |
  (.interval_percent // [.effect_percent, .effect_percent]) | .[0] <= $high and .[1] >= $low' $dir/worth $dir/judged)"
check_eq "both say better" true "$(jq -s '.[0].classes[0].effect_percent < 0 and .[1].effect_percent < 0' $dir/worth $dir/judged)"
