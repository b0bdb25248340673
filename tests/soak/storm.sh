# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Shared by all storms, in a guest and on a tree. Each storm samples RssAnon of the daemon (`sample`) and
# prints its cost at the end. Only one time is checked: that the daemon comes to rest afterwards.
storm_percent=$(sed -nE 's/.*wq_tests\.storm=([0-9]+).*/\1/p' <<<"${guest_append:-}")
storm_percent=${storm_percent:-100}

# `scaled N LEAST`: prints storm_percent of N, but at least LEAST.
scaled() {
  local n=$(($1 * storm_percent / 100))
  echo $((n < $2 ? $2 : n))
}

rss=() storm_pid=""
rss_anon() { awk '/^RssAnon:/ {print $2}' "/proc/$storm_pid/status"; } # kB
sample() { rss+=("$(rss_anon)"); }
median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# Flat: the median of the last quarter of the samples exceeds that of the second quarter by at most 5%, or 64
# kB if that is more. (The first quarter is warm-up.)
expect_flat() {
  local n=${#rss[@]} early late allowed
  [ "$n" -ge 8 ] || fail "only $n samples of RssAnon"
  early=$(median "${rss[@]:n/4:n/2 - n/4}")
  late=$(median "${rss[@]:3 * n / 4}")
  allowed=$((early / 20 > 64 ? early / 20 : 64))
  note "RssAnon, kB: ${rss[*]}"
  note "figures: RssAnon second quarter $early kB, last quarter $late kB, most $(printf '%s\n' "${rss[@]}" | sort -n | tail -n 1) kB"
  [ "$late" -le $((early + allowed)) ] || fail "RssAnon grows: $early kB, then $late kB"
}

# ---- in a guest, under systemd

unit_cpu() { awk '/^usage_usec/ {print $2}' /sys/fs/cgroup/system.slice/wq-tuned.service/cpu.stat; }
main_pid() { systemctl show -P MainPID wq-tuned; }

# Prints the lines that the daemon itself wrote to the journal since `mark`.
own_lines() { journalctl --sync; journalctl "_PID=$storm_pid" -o cat --since="${marked:?}"; }

# Call it when the daemon runs.
storm_begin() {
  storm_pid=$(main_pid)
  storm_cpu=$(unit_cpu)
  storm_time=${EPOCHREALTIME/./}
  mark
  note "RssAnon before: $(rss_anon) kB"
}

# The daemon has nothing to do: one or two ticks in 20 s, which are slow in the emulator, but no busy loop.
expect_rest() {
  local spent wall=${EPOCHREALTIME/./}
  spent=$(unit_cpu)
  sleep 20
  spent=$(($(unit_cpu) - spent)) wall=$((${EPOCHREALTIME/./} - wall))
  note "figures: at rest CPU $((1000 * spent / wall)) in 1000 of one"
  [ $((100 * spent / wall)) -le 25 ] || fail "it does not come to rest"
}

# `storm_end MOST`: checks that the daemon was not restarted during the storm, did not grow, wrote at most
# MOST lines to the journal, and has come to rest.
storm_end() {
  local spent lines wall=$((${EPOCHREALTIME/./} - storm_time))
  check_eq "the daemon is the one of before" "$storm_pid 0" "$(main_pid) $(systemctl show -P NRestarts wq-tuned)"
  spent=$(($(unit_cpu) - storm_cpu))
  lines=$(own_lines | wc -l)
  note "figures: CPU $((spent / 1000)) ms in $((wall / 1000)) ms, $((100 * spent / wall)) % of one; journal $lines lines"
  own_lines | sed -E 's/[0-9]+/N/g' | sort | uniq -c | sort -rn | awk 'NR <= 5'
  expect_flat
  [ "$lines" -le "$1" ] || fail "$lines lines in the journal, more than $1"
  expect_rest
}

# Checks that each target with the state `applied` has the planned scope, and that none has a state of
# failure.
expect_planned() {
  local bad
  bad=$(status | jq -c '.targets[] | select(.state == "set" and .effective != .planned or .state == "quarantined" or
    .state == "external" or .state == "waiting" or .state == "unsupported") | [.name, .state, .effective, .planned, .reason]')
  check_eq "targets that do not hold their plan" "" "$bad"
}
applied() { status | jq '[.targets[] | select(.state == "set")] | length'; }
entries_are() { [ "$(entries)" = "$1" ]; }
