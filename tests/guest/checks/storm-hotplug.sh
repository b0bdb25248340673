# SPDX-License-Identifier: LGPL-2.1-or-later
# CPUs off and on under load: the settings stay, and the only writes are those for the devices that were
# opened.
# timeout: 3000
. lib.sh
. storm.sh

cycles=$(scaled 200 16)
crypt_open c0 0
crypt_open c1 1
wq0=$(wq_of c0) wq1=$(wq_of c1)
apply_policy "$(other_scope)"
start_to "$wq0" "$(other_scope)"
expect_scope "$wq1" "$(other_scope)"
check_eq "writes before" 2 "$(daemon_field writes)"
reads=$(daemon_field topology_reads)
online=$(cat /sys/devices/system/cpu/online)
load_c0

storm_begin
for ((cycle = 0; cycle < cycles; cycle++)); do
  cpu=/sys/devices/system/cpu/cpu$((1 + cycle % 7))/online
  echo 0 >"$cpu"
  echo 1 >"$cpu"
  [ $(((cycle + 1) % (cycles / 8))) != 0 ] || sample
done
kill -0 "$load" || fail "the load ended by itself"
load_off
all_looked_at() { [ "$(status | jq -r '[.targets[].reason | select(test("pods unknown"))] | length')" = 0 ]; }
wait_until 60 all_looked_at || fail "pods are unknown"
sleep 2
check_eq "CPUs online" "$online" "$(cat /sys/devices/system/cpu/online)"
check_eq "scopes" "$(other_scope) $(other_scope)" "$(scope_of "$wq0") $(scope_of "$wq1")"
expect_planned
check_eq "applied" 2 "$(applied)"
check_eq "entries" 2 "$(entries)"
check_eq "writes after" 2 "$(daemon_field writes)"
reads=$(($(daemon_field topology_reads) - reads))
note "figures: $cycles cycles, $reads topologies read"
[ "$reads" -gt 0 ] || fail "no CPU event was heard"
storm_end 20
systemctl stop wq-tuned
check_eq "after stop" "default default" "$(cut -d' ' -f1 "$workqueues/$wq0/affinity_scope") $(cut -d' ' -f1 "$workqueues/$wq1/affinity_scope")"
