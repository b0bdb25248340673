# SPDX-License-Identifier: LGPL-2.1-or-later
# The main function of wq-tuned, from enable to stop, on any kernel with affinity scopes. The workqueue is
# that of a crypt device, or `writeback` if there are no modules and so no dm-crypt.
. lib.sh

some_workqueue
scope=$(other_scope)
apply_policy "$scope" "$wq"
before=$(scope_of "$wq")
check_eq "planned" "$scope set" "$(wq-tunectl plan --json | jq -r --arg wq "$wq" '.targets[] | select(.name == $wq) | "\(.planned) \(.action)"')"
systemctl enable --quiet --now wq-tuned
expect_scope "$wq" "$scope"
check_eq "state" "set" "$(target "$wq" state)"
check_eq "its baseline" default "$(target "$wq" baseline)"
check_eq "writes" 1 "$(daemon_field writes)"
if [ "$wq" != writeback ]; then
  mbs=$(load_mbs c0 2 2)
  note "$mbs MB/s"
  [ "$mbs" -gt 0 ] || fail "the load moved nothing"
fi

note "-- kill -9: started again, and what was set stays set, without another write"
pid=$(systemctl show -P MainPID wq-tuned)
kill -9 "$pid"
again() { is_active && [ "$(systemctl show -P MainPID wq-tuned)" != "$pid" ] && state_is "$wq" set; }
wait_until 30 again || fail "not started again"
expect_scope "$wq" "$scope"
check_eq "its baseline" default "$(target "$wq" baseline)"

note "-- stop, and kill -9 for good"
systemctl stop wq-tuned
check_eq "after stop" "$before" "$(scope_of "$wq")"
check_eq "entries" 0 "$(entries)"
drop_in wq-tuned.service <<<$'[Service]\nRestart=no'
start_to "$wq" "$scope"
systemctl kill -s KILL wq-tuned
back() { [ "$(scope_of "$wq")" = "$before" ]; }
wait_until 30 back || fail "after kill -9 it holds '$(scope_of "$wq")'"
note "ok: after kill -9 it holds '$before'"
some_workqueue_done
