# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# 200 clients of the user nobody send calls without a pause: the daemon keeps running and working, does not
# grow, and is idle afterwards.
# timeout: 3000
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh
# shellcheck source=tests/soak/storm.sh
. /usr/lib/wq-tests/storm.sh

clients=200
seconds=$(scaled 60 16)
crypt_open c0 0
apply_policy "$(other_scope)"
systemctl start wq-tuned
expect_scope "$(wq_of c0)" "$(other_scope)"
hammer() { setpriv --reuid=65534 --regid=65534 --clear-groups /usr/lib/wq-tests/bus-storm "$clients" "$1"; }

hammer 5 >/run/wq-tests/warm
storm_begin
hammer "$seconds" >/run/wq-tests/hammer &
hammering=$!
for try in 1 2 3 4; do # meanwhile the daemon works as usual
  crypt_open "m$try" $((try % 4))
  wq=$(wq_of "m$try")
  wait_until 120 scope_is "$wq" "$(other_scope)" || fail "no scope for a device that came in the storm"
  crypt_close "m$try"
  timeout 120 wq-tunectl status >/dev/null || fail "no status for root"
  note "   RssAnon in the storm: $(rss_anon) kB"
done
timeout 120 wq-tunectl reload || fail "no reload for root"
wait "$hammering" || fail "the clients failed"
note "figures: $clients clients, $seconds s: $(cat /run/wq-tests/hammer)"
check_eq "answers that never came" 0 "$(jq .timeouts /run/wq-tests/hammer)"
jq -e '.statuses > 0 and .errors > 0 and .unanswered > 0' /run/wq-tests/hammer >/dev/null || fail "the storm did not blow"
check_eq "the daemon is the one of before" "$storm_pid" "$(main_pid)"
spent=$(($(unit_cpu) - storm_cpu)) wall=$((${EPOCHREALTIME/./} - storm_time))
note "figures: in the storm CPU $((100 * spent / wall)) % of one, $((spent / $(jq .calls /run/wq-tests/hammer))) us a call"

note "-- and again, shorter: does it grow? (What a storm took is given back at the watchdog's tick, which is every 15 s.)"
for _ in 1 2 3 4 5 6 7 8; do
  hammer 3 >/dev/null
  sleep 20
  sample
done
wait_until 120 entries_are 1 || fail "$(entries) entries"
expect_planned
storm_end 40
