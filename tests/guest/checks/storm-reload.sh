# SPDX-License-Identifier: LGPL-2.1-or-later
# A thousand reloads, five hundred of a good policy, then five hundred of a broken one: the plan stays the
# same, the daemon does not grow, and logs one or two lines for each.
# timeout: 3400
. lib.sh
. storm.sh

times=$(scaled 500 48)
crypt_c0
apply_policy "$(other_scope)"
start_to "$wq" "$(other_scope)"
plan() { status | jq -c '[.targets[] | [.name, .planned, .state, .scope]]'; }
before=$(plan)
said() { since_mark | grep -cE "$1" || true; } # PATTERN

# `reload_often PATTERN`: half of the reloads by systemctl, half by the signal alone. Signals that come
# together count as one, so it is sent until there were enough reloads. Takes four samples.
reload_often() {
  local i quarter=$((times / 4)) had wanted sent=0 n
  had=$(said "$1")
  for ((i = 1; i <= times / 2; i++)); do
    systemctl reload wq-tuned
    [ $((i % quarter)) != 0 ] || sample
  done
  wanted=$((had + times / 2))
  wait_until 120 reloads_are "$wanted" "$1" || fail "$(said "$1") reloads, not $wanted"
  for i in 3 4; do
    wanted=$((wanted + quarter))
    until [ "$(said "$1")" -ge "$wanted" ]; do
      for ((n = 0; n < quarter / 2 + 1; n++)); do kill -HUP "$storm_pid"; sent=$((sent + 1)); sleep 0.05; done
    done
    sample
  done
  note "figures: $(($(said "$1") - had)) reloads, of them $((times / 2)) by systemctl, for the others $sent signals"
}
reloads_are() { [ "$(said "$2")" -ge "$1" ]; } # N PATTERN

storm_begin
reload_often '^policy reloaded$'
check_eq "the plan" "$before" "$(plan)"
note "-- broken"
cp /etc/wq-tuned/wq-tuned.toml /run/wq-tests/good.toml
echo 'match = "twice"' >>/etc/wq-tuned/wq-tuned.toml
reload_often 'wq-tuned\.toml:[0-9]+:'
check_eq "the plan, under a broken policy" "$before" "$(plan)"
cp /run/wq-tests/good.toml /etc/wq-tuned/wq-tuned.toml
systemctl reload wq-tuned
expect_planned
check_eq "writes" 1 "$(daemon_field writes)"
check_eq "entries" 1 "$(entries)"
storm_end $((times * 4 + 20))
