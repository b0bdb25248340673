# SPDX-License-Identifier: LGPL-2.1-or-later
# The bus is root's: nobody else's call reaches the daemon, and everybody may read the status. No call starts a
# stopped daemon. The log level.
. lib.sh

crypt_c0
apply_policy leave
systemctl enable --quiet wq-tuned
expect_code() { # CODE TEXT COMMAND...
  local code=0
  "${@:3}" >/run/wq-tests/out 2>/run/wq-tests/err || code=$?
  check_eq "${*:3}: exit code" "$1" $code
  grep -q "$2" /run/wq-tests/out /run/wq-tests/err || fail "it says: $(cat /run/wq-tests/out /run/wq-tests/err)"
}

note "-- stopped"
expect_code 3 ': not running' wq-tunectl status
expect_code 3 '"state":"absent"' as_nobody wq-tunectl status --json
check_eq "what the kernel has" "default" "$(jq -r --arg n "$wq" '.targets[] | select(.name == $n) | .scope' /run/wq-tests/out)"
expect_code 3 'not running' wq-tunectl pin "$wq" smt
! is_active || fail "a call started the daemon"

note "-- running"
systemctl start wq-tuned
expect_code 0 '"state":"running"' as_nobody wq-tunectl status --json
check_eq "root and nobody see the same" "$(wq-tunectl status)" "$(as_nobody wq-tunectl status)"
for order in "pin $wq smt" "unpin $wq" "revert --all" "compare $wq --with smt" pause resume reload; do
  # shellcheck disable=SC2086
  expect_code 1 'run it as root (sudo)' as_nobody wq-tunectl $order
done
scope_is "$wq" default || fail "nobody's pin was carried out"
manager=(org.wqtuned1 /org/wqtuned1)
expect_code 1 'Access denied\|AccessDenied\|rejected' as_nobody busctl --system introspect "${manager[@]}"

note "-- killed: nobody is fooled by what it left"
systemctl kill --signal=STOP wq-tuned
wq-tunectl pin "$wq" cpu 2>/run/wq-tests/err &
asking=$!
sleep $((3 * ${patience:-1}))
cp /run/wq-tuned/status.json /run/wq-tests/status.json
systemctl kill --signal=KILL wq-tuned
code=0
wait $asking || code=$?
check_eq "exit code of an order meanwhile" 3 $code
grep -q 'wq-tuned ended meanwhile' /run/wq-tests/err || fail "it says: $(cat /run/wq-tests/err)"
systemctl stop wq-tuned
grep -q '"absent"' /run/wq-tuned/status.json || fail "the restorer left $(cat /run/wq-tuned/status.json)"
cp /run/wq-tests/status.json /run/wq-tuned/status.json
expect_code 3 ': not running, mode .* is gone' env COLUMNS=1000 wq-tunectl status
systemctl restart wq-tuned
check_eq "the order was not carried out" leave "$(target "$wq" state)"

note "-- the log's level"
check_eq "at start" "info journal" "$(systemctl service-log-level wq-tuned) $(systemctl service-log-target wq-tuned)"
systemctl service-log-level wq-tuned debug
check_eq "level" debug "$(systemctl service-log-level wq-tuned)"
mark
wq-tunectl reload
grep -q '^looked: ' <<<"$(since_mark)" || fail "nothing for debuggers: $(since_mark)"
systemctl service-log-level wq-tuned warning
mark
wq-tunectl reload
check_eq "logged at level warning" "" "$(since_mark)"
systemctl service-log-level wq-tuned loud 2>/run/wq-tests/err && fail "a level called loud"
as_nobody busctl --system set-property org.wqtuned1 /org/freedesktop/LogControl1 org.freedesktop.LogControl1 LogLevel s debug \
  2>/run/wq-tests/err && fail "nobody may set the level"
systemctl service-log-level wq-tuned info

note "-- root"
wq-tunectl pin "$wq" smt
check_eq "pinned" smt "$(scope_of "$wq")"
check_eq "state" pinned "$(target "$wq" state)"
wq-tunectl pin "$wq" cpu
check_eq "pinned elsewhere" cpu "$(scope_of "$wq")"
systemctl restart wq-tuned
check_eq "a pin survives a restart" "cpu pinned default" "$(scope_of "$wq") $(target "$wq" state) $(target "$wq" baseline)"
wq-tunectl revert "$wq"
check_eq "reverted" "default reverted" "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope") $(target "$wq" state)"
wq-tunectl unpin "$wq"
check_eq "unpinned" leave "$(target "$wq" state)"
expect_code 1 'must stay' wq-tunectl pin @default smt
sed -i 's/"leave"/"auto"/' /etc/wq-tuned/wq-tuned.toml
wq-tunectl reload
wq-tunectl pin @default smt
check_eq "@default pinned" smt "$(cat /sys/module/workqueue/parameters/default_affinity_scope)"
check_eq "its followers" "default (smt)" "$(scope_of "$wq")"
for bad in "1 pin nothing smt" "2 pin $wq cach" "2 pin $wq default" "1 unpin $wq"; do
  # shellcheck disable=SC2086
  expect_code ${bad%% *} . wq-tunectl ${bad#* }
  note "   $(cat /run/wq-tests/err)"
done
busctl --system introspect "${manager[@]}" >/dev/null
systemctl stop wq-tuned
scope_is "$wq" default || fail "after stop it holds $(scope_of "$wq")"
