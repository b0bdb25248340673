# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The bus: every user may read; root, and users that polkit allows, may give orders; no call starts a stopped
# daemon. The log level.
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh

as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
crypt_open c0
wq=$(wq_of c0)
apply_policy leave
systemctl enable --quiet wq-tuned

note "-- stopped"
code=0
wq-tunectl status --json >/run/wq-tests/out || code=$?
check_eq "exit code of status" 3 $code
check_eq "daemon" absent "$(jq -r .daemon.state /run/wq-tests/out)"
check_eq "what the kernel has" "default" "$(jq -r --arg n "$wq" '.targets[] | select(.name == $n) | .scope' /run/wq-tests/out)"
code=0
wq-tunectl pin "$wq" smt 2>/dev/null || code=$?
check_eq "exit code of pin" 3 $code
busctl --system call org.wqtuned1 /org/wqtuned1 org.wqtuned1.Manager GetStatus >/dev/null 2>&1 && fail "somebody answered"
! is_active || fail "a call started the daemon"

note "-- running"
systemctl start wq-tuned
as_nobody wq-tunectl status --json | jq -e '.daemon.state == "running"' >/dev/null
as_nobody wq-tunectl status >/dev/null
nobody_may_not() { # COMPLAINT
  local order code
  for order in "pin $wq smt" "unpin $wq" "revert --all" "trial $wq --arm smt" pause resume reload; do
    code=0
    # shellcheck disable=SC2086
    as_nobody wq-tunectl $order 2>/run/wq-tests/err || code=$?
    check_eq "nobody: $order" 1 $code
    grep -qE "$1" /run/wq-tests/err || fail "it says: $(cat /run/wq-tests/err)"
  done
  scope_is "$wq" default || fail "nobody's pin was carried out"
}

note "-- polkit refused, by default"
nobody_may_not 'not allowed: polkit (refused|asks for authentication)'
systemctl is-active --quiet polkit || fail "polkit was not asked"

note "-- polkit lets nobody pin, and that alone"
rule=/etc/polkit-1/rules.d/00-check.rules
trap 'rm -f "$rule"; systemctl unmask --quiet --runtime polkit' EXIT
cat >"$rule" <<'RULE'
polkit.addRule(function(action, subject) {
  if (action.id == "org.wqtuned1.pin" && subject.user == "nobody") return polkit.Result.YES;
});
RULE
systemctl restart polkit
as_nobody wq-tunectl pin "$wq" smt
check_eq "pinned by nobody" "smt pinned" "$(scope_of "$wq") $(target "$wq" state)"
code=0
as_nobody wq-tunectl unpin "$wq" 2>/run/wq-tests/err || code=$?
check_eq "nobody: unpin" 1 $code

note "-- a polkit that hangs: the daemon does not"
systemctl kill --signal=STOP polkit
as_nobody wq-tunectl pin "$wq" cpu &
asking=$!
sleep $((3 * ${patience:-1}))
timeout $((5 * ${patience:-1})) wq-tunectl status >/dev/null || fail "no status while polkit hangs"
check_eq "not carried out yet" smt "$(scope_of "$wq")"
systemctl kill --signal=CONT polkit
wait $asking
check_eq "carried out later" cpu "$(scope_of "$wq")"
wq-tunectl unpin "$wq"
rm "$rule"

note "-- the daemon dies in the middle of an order: as if none ran"
systemctl kill --signal=STOP wq-tuned
wq-tunectl pin "$wq" cpu 2>/run/wq-tests/err &
asking=$!
sleep $((3 * ${patience:-1}))
systemctl kill --signal=KILL wq-tuned
code=0
wait $asking || code=$?
check_eq "exit code" 3 $code
grep -q 'the daemon ended meanwhile' /run/wq-tests/err || fail "it says: $(cat /run/wq-tests/err)"
systemctl restart wq-tuned
check_eq "not carried out" leave "$(target "$wq" state)"

# The guest has no login session, and without one polkit asks for no password; this is the same with
# systemctl.
note "-- on a terminal polkit is told who could ask for a password, as by systemctl"
mark
script -qec "setpriv --reuid=65534 --regid=65534 --clear-groups wq-tunectl pin $wq smt" /run/wq-tests/typed < <(sleep 4) >/dev/null || true
journalctl --sync
grep -q 'Registered Authentication Agent.*pkttyagent' <<<"$(journalctl -o cat --no-pager --since="$marked")" ||
  fail "no agent: $(cat /run/wq-tests/typed)"

note "-- no word of a caller is kept that no target can have"
as_nobody wq-tunectl unpin "$(printf 'x%.0s' {1..256})" 2>/run/wq-tests/err && fail "carried out"
grep -q 'longer than 255 bytes' /run/wq-tests/err || fail "it says: $(cat /run/wq-tests/err)"

note "-- no polkit: root alone"
systemctl mask --quiet --runtime --now polkit
nobody_may_not 'only root may'
systemctl unmask --quiet --runtime polkit

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
log_level() { as_nobody busctl --system "$1" org.wqtuned1 /org/freedesktop/LogControl1 org.freedesktop.LogControl1 LogLevel "${@:2}"; }
log_level set-property s debug 2>/run/wq-tests/err && fail "nobody may set the level"
check_eq "read by nobody" 's "warning"' "$(log_level get-property)"
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
wq-tunectl pin @default smt
check_eq "@default pinned" smt "$(cat /sys/module/workqueue/parameters/default_affinity_scope)"
check_eq "its followers" "default (smt)" "$(scope_of "$wq")"
for bad in "1 pin nothing smt" "2 pin $wq cach" "2 pin $wq default" "1 unpin $wq"; do
  code=0
  # shellcheck disable=SC2086
  wq-tunectl ${bad#* } 2>/run/wq-tests/err || code=$?
  check_eq "${bad#* }" "${bad%% *}" $code
  note "   $(cat /run/wq-tests/err)"
done
property() { as_nobody busctl --system get-property org.wqtuned1 /org/wqtuned1 org.wqtuned1.Manager "$1"; }
check_eq "the version" "s \"$(wq-tuned --version | sed -n '1s/.* //p')\"" "$(property Version)"
check_eq "the daemon's state" 's "running"' "$(property State)"
check_eq "the summary" "s \"$(systemctl show -P StatusText wq-tuned)\"" "$(property Summary)"
busctl --system introspect org.wqtuned1 /org/wqtuned1 >/dev/null
systemctl stop wq-tuned
scope_is "$wq" default || fail "after stop it holds $(scope_of "$wq")"
