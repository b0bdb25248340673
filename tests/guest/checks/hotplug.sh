# SPDX-License-Identifier: LGPL-2.1-or-later
# CPU off and on, SMT off and on: the daemon plans again, and writes nothing if nothing changed.
. lib.sh

crypt_c0
apply_policy "$(other_scope)"
start_to "$wq" "$(other_scope)"
writes=$(daemon_field writes)
check_eq "writes for one device" 1 "$writes"

planned_anew() { [ "$(daemon_field topology_reads)" -gt "$1" ]; }
step() { # WHAT COMMAND...
  local what=$1 before
  before=$(daemon_field topology_reads)
  shift
  "$@"
  wait_until 10 planned_anew "$before" || fail "$what: no new plan"
  check_eq "$what: writes" "$writes" "$(daemon_field writes)"
  check_eq "$what: state" set "$(target "$wq" state)"
}
off() { echo 0 >/sys/devices/system/cpu/cpu5/online; }
on() { echo 1 >/sys/devices/system/cpu/cpu5/online; }
step "CPU 5 off" off
step "CPU 5 on" on
if [ "$(cat /sys/devices/system/cpu/smt/control)" = on ]; then
  smt() { echo "$1" >/sys/devices/system/cpu/smt/control; }
  step "SMT off" smt off
  step "SMT on" smt on
else
  note "not here: SMT off and on"
fi
sleep 1
check_eq "writes at the end" "$writes" "$(daemon_field writes)"
