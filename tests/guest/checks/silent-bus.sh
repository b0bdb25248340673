# SPDX-License-Identifier: LGPL-2.1-or-later
# A bus that accepts connections and never answers: the daemon starts, works, stops and restores as if there
# were no bus.
. lib.sh

socket=/run/wq-tests/silent
rm -f $socket
/usr/lib/wq-tests/bus-flood silent $socket &
listener=$!
trap 'kill $listener' EXIT
drop_in wq-tuned.service <<EOF
[Service]
Environment=DBUS_SYSTEM_BUS_ADDRESS=unix:path=$socket
EOF
crypt_c0
apply_policy "$(other_scope)"
seconds() { # LIMIT COMMAND...: fails if the command takes longer
  local limit=$(($1 * ${patience:-1})) begin=$EPOCHREALTIME took
  shift
  "$@"
  took=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
  note "figures: $*: $took ms"
  [ $took -lt $((limit * 1000)) ] || fail "$* took $took ms"
}

# Two seconds of each limit are for the bus, the rest for an emulator under load. Before the bus had a time
# limit, it took 90 s.
seconds 30 systemctl start wq-tuned
expect_scope "$wq" "$(other_scope)"
journalctl --sync
grep -q 'the system bus does not answer' <<<"$(journalctl -u wq-tuned -o cat)" || fail "the journal does not say so"

note "-- the watchdog is fed: 35 s are longer than its 30"
pid=$(systemctl show -P MainPID wq-tuned)
sleep 35
check_eq "the daemon is the one of before" "$pid" "$(systemctl show -P MainPID wq-tuned)"

note "-- status needs no bus; an order does, and does not wait for it either"
ask() { # ARGUMENT...: sets $code
  code=0
  DBUS_SYSTEM_BUS_ADDRESS=unix:path=$socket wq-tunectl "$@" >/run/wq-tests/out 2>&1 || code=$?
}
seconds 20 ask status
check_eq "exit code of status" 0 "$code"
seconds 20 ask pause
[ "$code" != 0 ] || fail "an order without a bus succeeds: $(</run/wq-tests/out)"

seconds 20 systemctl stop wq-tuned
check_eq "result" success "$(systemctl show -P Result wq-tuned)"
scope_is "$wq" default || fail "after stop it holds $(scope_of "$wq")"
