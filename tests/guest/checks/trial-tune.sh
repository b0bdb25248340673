# SPDX-License-Identifier: LGPL-2.1-or-later
# Mode tune ends at the best of the scopes that it compares (none is coarser than the plan), or at one within 3% of it.
#
# The speed of the emulator changes by a third within a minute, even on an idle machine, and the best of
# several may be the best only by luck. So turns are short, in random order, under one permanent load. The
# first turns find the best scope. Other turns, with only the two, decide whether tune's scope is within 3% of
# it.
# timeout: 1500
. lib.sh

crypt_c0
stat=/sys/class/block/$(basename "$(readlink -f /dev/mapper/c0)")/stat
# One scope for each partition, with the plan's names.
mapfile -t scopes < <(wq-tunectl explain "$wq" --json |
  jq -r '(.would_compare + [.effective]) as $all | .candidates[] | select(any(.same[]; IN($all[]))).scope')
note "partitions: ${scopes[*]}"

# `in_turns N SCOPE...`: N turns of a second for each scope; sets kbs[SCOPE] to the write rate in kB/s.
declare -A kbs
in_turns() {
  local turns=$1 scope began before after
  shift
  local -Ai sectors=() us=()
  note "-- $turns turns of each"
  while read -r scope; do
    echo "$scope" >"$workqueues/$wq/affinity_scope"
    sleep 0.2
    began=${EPOCHREALTIME/./}
    read -ra before <"$stat"
    sleep 1
    read -ra after <"$stat"
    us[$scope]+=$((${EPOCHREALTIME/./} - began))
    sectors[$scope]+=$((after[6] - before[6]))
  done < <(for ((; turns > 0; turns--)); do shuf -e "$@"; done)
  kill -0 "$load" || fail "the load ended by itself"
  echo default >"$workqueues/$wq/affinity_scope"
  for scope in "$@"; do
    kbs[$scope]=$((sectors[$scope] * 512000 / us[$scope]))
    note "$scope: ${kbs[$scope]} kB/s"
  done
}

writers=4 load_c0 # as in demo.sh: a gain that no other load of the host hides
in_turns 25 "${scopes[@]}"
best=${scopes[0]}
for scope in "${scopes[@]}"; do
  [ "${kbs[$scope]}" -le "${kbs[$best]}" ] || best=$scope
done

trial_policy auto
systemctl start wq-tuned
# Compares each candidate with the scope in force, until no comparison is dense any more.
wait_until 60 has_pairs "$wq" 1 || fail "no pair: $(trial_of "$wq" reason)"
settled() { [ "$(trial_of "$wq" course)" != dense ]; }
wait_until 900 settled || fail "no end: $(wq-tunectl status)"
wq-tunectl status
wq-tunectl history
# Not the scope in the file: a pair of the watch may be running.
chosen=$(wq-tunectl status --json |
  jq -er --arg wq "$wq" '.targets[] | select(.name == $wq).comparison | if .course == "watched" then .candidate else .reference end')
# If the default is kept, `effective` is the scope that it stands for. Another scope may make the same pools.
chosen=$(wq-tunectl explain "$wq" --json | jq -er --arg s "$chosen" '.candidates[] | select(.same | index($s)) | .scope')
[ -n "${kbs[$chosen]:-}" ] || fail "'$chosen' was not measured"
note "tune chose $chosen, $best is best"
systemctl stop wq-tuned
expect_scope "$wq" default

[ "$chosen" != "$best" ] || exit 0
in_turns 200 "$chosen" "$best"
[ $((kbs[$chosen] * 100)) -ge $((kbs[$best] * 97)) ] || fail "not within 3% of the best"
