# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Mode tune ends at the scope that trying them all finds best, or at one within 3% of it.
# timeout: 900
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh

crypt_open c0
wq=$(wq_of c0)
# One scope of each partition, by the names that the plan gives them.
mapfile -t scopes < <(wq-tunectl plan --json | jq -r --arg wq "$wq" '.targets[] | select(.name == $wq) | .candidates[].scope')
note "partitions: ${scopes[*]}"

note "-- all of them, in turns"
declare -A mbs
for _ in 1 2 3 4 5; do
  for scope in "${scopes[@]}"; do
    echo "$scope" >"$workqueues/$wq/affinity_scope"
    mbs[$scope]+="$(load_mbs c0 4 2) "
  done
done
echo default >"$workqueues/$wq/affinity_scope"
median() { tr ' ' '\n' <<<"$1" | grep . | sort -n | sed -n 3p; }
best=0
for scope in "${scopes[@]}"; do
  note "$scope: ${mbs[$scope]}MB/s, median $(median "${mbs[$scope]}")"
  [ "$(median "${mbs[$scope]}")" -le "$best" ] || best=$(median "${mbs[$scope]}")
done

load_on c0
trap load_off EXIT
trial_policy auto
sed -i '1i [daemon]\nmode = "tune"' /etc/wq-tuned/wq-tuned.toml
systemctl start wq-tuned
# Each meets the incumbent once, which is in place already.
wait_until 600 ended $((${#scopes[@]} - 1)) || fail "no end: $(wq-tunectl status)"
sleep 2
wq-tunectl history
ended ${#scopes[@]} && fail "more trials than challengers"
chosen=$(target "$wq" effective)
# A default that is kept is called by the scope that it is, which may make the same pools as another.
chosen=$(wq-tunectl explain "$wq" --json | jq -er --arg s "$chosen" '.candidates[] | select(.same | index($s)) | .scope')
[ -n "${mbs[$chosen]:-}" ] || fail "'$chosen' was not measured"
note "tune chose $chosen: $(median "${mbs[$chosen]}") MB/s; the best is $best"
[ $(($(median "${mbs[$chosen]}") * 100)) -ge $((best * 97)) ] || fail "not within 3% of the best"
systemctl stop wq-tuned
expect_scope "$wq" default
