# SPDX-License-Identifier: LGPL-2.1-or-later
# A user floods the bus: nothing of it reaches the daemon, so its CPU time and its memory do not change at all.
# Between two ticks of the watchdog the daemon does nothing; the flood runs there.
. lib.sh

seconds=6
crypt_open c0
apply_policy leave
systemctl start wq-tuned
pid=$(systemctl show -P MainPID wq-tuned)
# CPU time in ns, switches to the daemon, resident pages.
used() { echo "$(cut -d' ' -f1,3 "/proc/$pid/schedstat") $(cut -d' ' -f2 "/proc/$pid/statm")"; }
tick() { # waits for the end of the next tick
  local before
  before=$(used)
  wait_until 40 eval "[ \"\$(used)\" != '$before' ]" || fail "no tick"
  sleep 1
}
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups /usr/lib/wq-tests/bus-flood calls "$1"; }

tick # what the start needs later
tick
before=$(used)
sent=$(nobody $seconds)
after=$(used)
note "figures: $sent calls in $seconds s; CPU ns, switches, pages before and after: $before, $after"
[ "$sent" -gt 100 ] || fail "that was no flood"
check_eq "what the daemon has used" "$before" "$after"
tick # the measure works
[ "$(used)" != "$before" ] || fail "a tick costs nothing"
systemctl stop wq-tuned
