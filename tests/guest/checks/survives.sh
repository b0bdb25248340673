# SPDX-License-Identifier: LGPL-2.1-or-later
# In whatever way the daemon ends, the baseline is restored. If it is only restarted, the setting stays, with
# its entry. The first baseline stays the baseline.
# timeout: 460
. lib.sh

scope=$(other_scope)
crypt_c0
apply_policy "$scope"
entry() { jq -c --arg n "$wq" '.entries[] | select(.target == $n) | [.baseline, .strict.baseline]' /run/wq-tuned/owned.json; }

note "-- stop"
start_to "$wq" "$scope"
systemctl stop wq-tuned
check_eq "after stop" default "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope")"

note "-- restart and upgrade: no flap"
start_to "$wq" "$scope"
mark
systemctl restart wq-tuned
check_eq "scope after restart" "$scope" "$(scope_of "$wq")"
check_eq "writes of the new daemon" 0 "$(daemon_field writes)"
check_eq "state" set "$(target "$wq" state)"
check_eq "the first baseline" '["default","0"]' "$(entry)"
cp /usr/sbin/wq-tuned /usr/sbin/wq-tuned.new && mv /usr/sbin/wq-tuned.new /usr/sbin/wq-tuned # as dpkg does
systemctl daemon-reload
systemctl restart wq-tuned
check_eq "scope after an upgrade" "$scope" "$(scope_of "$wq")"
check_eq "writes of the newer daemon" 0 "$(daemon_field writes)"
[ -z "$(since_mark | grep "back to" || true)" ] || fail "something was put back: $(since_mark)"

note "-- kill -9: put back by ExecStopPost, started again, same baseline"
mark
systemctl kill --kill-whom=main --signal=KILL wq-tuned
restored() { since_mark | grep -q "$wq: back to 'default'"; }
wait_until 10 restored || fail "not put back: $(since_mark)"
wait_until 10 is_active || fail "not started again"
expect_scope "$wq" "$scope"
check_eq "the first baseline" '["default","0"]' "$(entry)"

note "-- kill -9 where the libraries of the daemon are gone, as in an upgrade that is half done: put back all the same"
away=/usr/lib/wq-tests/away
libraries_back() { [ ! -d $away ] || { mv $away/* "$libraries/" && rmdir $away; }; }
libraries=$(dirname "$(echo /usr/lib/*-linux-gnu/libhwloc.so.15)")
trap libraries_back EXIT
drop_in wq-tuned.service <<<$'[Service]\nRestart=no'
mkdir $away
mv "$libraries"/lib{hwloc,systemd,udev,bpf,fmt,stdc++}.so.* $away/
wq-tuned --version 2>/dev/null && fail "the daemon still starts"
mark
systemctl kill --kill-whom=main --signal=KILL wq-tuned
wait_until 10 scope_is "$wq" default || fail "not put back: $(since_mark)"
is_failed() { systemctl is-failed --quiet wq-tuned; }
wait_until 20 is_failed || fail "not failed: $(systemctl show -P ActiveState wq-tuned)"
wait_until 20 no_jobs || fail "jobs: $(systemctl list-jobs --no-legend)"
check_eq "the restore unit" success "$(systemctl show -P Result wq-tuned-restore)"
check_eq "entries" 0 "$(entries)"
check_eq "the journal, by its fields" "$wq: back to 'default'" \
  "$(journalctl -o cat --since="$marked" MESSAGE_ID=2f8fec0c460140d0bcee5e705550124c WQ_NAME="$wq" SYSLOG_IDENTIFIER=wq-tuned PRIORITY=6)"
libraries_back
no_drop_in
start_to "$wq" "$scope"

note "-- a hang: the watchdog ends it"
systemctl stop wq-tuned
drop_in wq-tuned.service <<<$'[Service]\nWatchdogSec=3s\nTimeoutAbortSec=2s'
start_to "$wq" "$scope"
pid=$(systemctl show -P MainPID wq-tuned)
sleep 4
check_eq "not ended while healthy" "$pid" "$(systemctl show -P MainPID wq-tuned)"
mark
systemctl kill --kill-whom=main --signal=STOP wq-tuned
wait_until 20 restored || fail "not put back: $(since_mark)"
systemctl stop wq-tuned
no_drop_in

note "-- a restart refused by the start limit"
systemctl reset-failed wq-tuned 2>/dev/null || true
drop_in wq-tuned.service <<<$'[Unit]\nStartLimitIntervalSec=1h' # independent of the speed of this machine
start_to "$wq" "$scope"
for _ in 1 2 3 4 5 6 7; do systemctl restart wq-tuned 2>/dev/null || break; done
systemctl is-failed --quiet wq-tuned || fail "seven restarts in a row were not refused"
expect_scope "$wq" default
check_eq "entries" 0 "$(entries)"
no_drop_in

note "-- a start that fails, in a restart"
start_to "$wq" "$scope"
drop_in wq-tuned.service <<<$'[Service]\nRestart=no\nExecStart=\nExecStart=/bin/false'
systemctl restart wq-tuned 2>/dev/null && fail "/bin/false is no daemon"
expect_scope "$wq" default
check_eq "entries" 0 "$(entries)"
no_drop_in

note "-- on_exit = keep, and back"
start_to "$wq" "$scope"
sed -i '1i daemon.on_exit = "keep"' /etc/wq-tuned/wq-tuned.toml
systemctl reload wq-tuned
echo '[daemon' >>/etc/wq-tuned/wq-tuned.toml # broken, but not loaded
systemctl stop wq-tuned
sed -i '$d' /etc/wq-tuned/wq-tuned.toml
check_eq "kept" "$scope" "$(scope_of "$wq")"
check_eq "its entry" '["default","0"]' "$(entry)"
check_eq "status without a daemon" "absent set default" "$(daemon_field state) $(target "$wq" state) $(target "$wq" baseline)"
check_eq "undo" "echo default > '$workqueues/$wq/affinity_scope'" "$(wq-tunectl undo)"
sed -i '/^daemon.on_exit/d' /etc/wq-tuned/wq-tuned.toml
systemctl start wq-tuned
check_eq "entry after the next start" '["default","0"]' "$(entry)"
check_eq "writes after the next start" 0 "$(daemon_field writes)"
systemctl stop wq-tuned
check_eq "and back" default "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope")"
