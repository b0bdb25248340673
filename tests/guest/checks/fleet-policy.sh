# SPDX-License-Identifier: LGPL-2.1-or-later
# A host without measurements gets the policy of a fleet, which fleet.sh put into the stage.
# timeout: 300
. lib.sh

drop_ins=/etc/wq-tuned/wq-tuned.toml.d
policy=$drop_ins/50-fleet.toml
check_eq "a machine id of its own" "$(sed -nE 's/.*systemd\.machine_id=([0-9a-f]+).*/\1/p' <<<"$guest_append")" "$(cat /etc/machine-id)"
[ ! -e $ledger ] || fail "there is a ledger"
check_eq "what this host has learned" "" "$(wq-tunectl history --ledger)"
crypt_c0
install -D -m 644 /usr/lib/wq-tests/50-fleet.toml $policy
check_eq "the policy is for this machine" 1 "$(wq-tunectl check $policy | grep -c 'of which 1 matches here')"

note "-- explained: the rule, its evidence, for which hosts"
wq-tunectl explain "$wq"
explained=$(wq-tunectl explain "$wq" --json)
rule=$(jq -r .rule <<<"$explained")
check_eq "whose rule" "$policy" "${rule%:*}"
check_eq "with its line" 1 "$(wq-tunectl explain "$wq" | grep -cF " $rule")"
check_eq "which plans" "system set" "$(jq -r '"\(.planned) \(.action)"' <<<"$explained")"
sed -n "${rule##*:}p" $policy | grep -qxF '[[host.workqueue]]' || fail "$rule is: $(sed -n "${rule##*:}p" $policy)"
evidence=$(sed -n "1,${rule##*:}p" $policy | grep '^# ' | tail -n 1)
note "above $rule: $evidence"
grep -qE -- '-> system, latency, better: E .* pairs of 4 hosts' <<<"$evidence" || fail "no evidence above the rule"
wq-tunectl explain "$wq" | grep -q "^ *because  *[a-z_]* -> system, latency, better: E " || fail "explain does not say why there is such a rule"
check_eq "the fleet's host table alone" "fleet 1:" "$(jq -r '[.hosts[] | select(.matches).name | .[0:8]] | join(" ")' <<<"$explained")"

note "-- in force at once, and nothing else is"
start_to "$wq" system
wait_until 10 state_is "$wq" set || fail "state $(target "$wq" state): $(target "$wq" reason)"
check_eq "alone" "$wq" "$(status | jq -r '[.targets[] | select(.state == "set").name] | join(" ")')"
check_eq "the others are left" "leave unmanaged" "$(status | jq -r --arg wq "$wq" '[.targets[] | select(.name != $wq and .kind != "ordered" and .kind != "per-cpu").state] | unique | join(" ")')"
check_eq "the host table in force" "$(jq -r '.hosts[] | select(.matches).name' <<<"$explained")" "$(status | jq -r '.daemon.hosts | join("; ")')"
check_eq "explain knows that" set "$(wq-tunectl explain "$wq" --json | jq -r .state)"
wq-tunectl status
check_eq "nothing was measured for it" "" "$(wq-tunectl history --ledger)"

note "-- and for a device that comes later"
crypt_open c1 1
later=$(wq_of c1)
wait_until 30 scope_is "$later" system || fail "$later holds '$(scope_of "$later")': $(target "$later" reason)"

systemctl stop wq-tuned
check_eq "after the stop" default "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope")"
