# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 400
# `wq-tunectl top` counts the work that was done, ends when it is told to, and restores the terminal and the
# kernel.
. lib.sh
count_work=/usr/lib/wq-tests/count-work
dir=/run/wq-tests/top
mkdir -p $dir
# From 7.0 on a tracepoint can be preempted (for long in an emulator), and the counters then miss some items.
case $guest_kernel in 6.*) missed=0.005 ;; *) missed=0.02 ;; esac
export TERM=xterm TERMINFO=/usr/lib/wq-tests/terminfo
put_back() { udevadm control --start-exec-queue; }
trap put_back EXIT

holds() { # WHAT FILE EXPRESSION: fails unless it is true for the array of the lines in FILE
  [ "$(jq -s "$3" "$2")" = true ] || { jq -sc '.[-1]' "$2"; fail "$1: not so: $3"; }
  note "ok: $1"
}

note "-- as many as the load has done, and the kernel counted"
key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
crypt_open c0
# With same_cpu_crypt the device's kcryptd is a per-CPU workqueue, with an item for each block.
dmsetup create c1 --table "0 131072 crypt aes-xts-plain64 $key$(rev <<<"$key") 0 /dev/ram1 0 1 same_cpu_crypt"
wq=$(wq_of c1)
udevadm settle
udevadm control --stop-exec-queue # udev would read the device after a write
sysctl -q kernel.bpf_stats_enabled=1
wq-tunectl top --functions --json -d 0.5 >$dir/all 2>$dir/err &
all=$!
wq-tunectl top "$wq" --json -d 0.5 >$dir/named 2>$dir/err &
named=$!
wait_until 60 test -s $dir/all || fail "no line: $(cat $dir/err)"
wait_until 60 test -s $dir/named || fail "no line: $(cat $dir/err)"
blocks=2000
dd if=/dev/zero of=/dev/mapper/c1 bs=4k count=$blocks oflag=direct 2>/dev/null
sleep 2
note "ns per run: $("$count_work" --loaded | jq -c 'map_values(.ns / ([.runs, 1] | max) | round)')"
sysctl -q kernel.bpf_stats_enabled=0
kill -TERM $all
kill -INT $named 2>/dev/null
wait $all || fail "SIGTERM: exit code $?"
this='[.[].workqueues[] | select(.name == "'"$wq"'")]'
near="| . >= $blocks * 0.995 and . <= $blocks * 1.005"
seen="| . >= $blocks * (1 - $missed) and . <= $blocks * 1.005"
jq -sc "$this"' | [.[] | select(.items > 0)][0]' $dir/all
holds "the kernel's own count" $dir/all "$this | map(.items) | add $near"
holds "its total" $dir/all "$this"' | .[-1].total - .[0].total + .[0].items'" $near"
holds "how many were timed" $dir/all "$this | map(.timed) | add $seen"
holds "waits are in order" $dir/all "$this"' | map(select(.timed > 0).wait_ns) | length > 0 and all(.p50 > 0 and .p50 <= .p90 and .p90 <= .p99)'
holds "so is the lock's" $dir/all "$this"' | map(select(.timed > 0)) | all(.lock_ns > 0 and .lock_ns < 1e7)'
holds "the function" $dir/all '[.[].functions[] | select(.workqueue == "'"$wq"'" and .function == "kcryptd_crypt [dm_crypt]").items] | add '"$seen"
holds "every function has a name and time" $dir/all '[.[].functions[]] | length > 0 and all(.function != "" and .busy > 0)'
# After an interval that was too long comes a shorter one.
holds "intervals are as long as they were asked for" $dir/all 'map(.seconds) | add / length >= 0.4'
holds "nothing was lost, nothing lacks" $dir/all 'all(.limits == "") and (map(.lost) | add) < 20'
holds "no address gets out" $dir/all '([.. | numbers | select(. > 1e18)] | length == 0) and (tostring | test("ffff[0-9a-f]{12}|address") | not)'
# A shell starts background processes with SIGINT ignored; top handles it anyway.
wait $named || fail "SIGINT: exit code $?"
holds "by name, that one alone" $dir/named 'all(.workqueues | map(.name) | unique == ["'"$wq"'"])'
holds "by name, as many" $dir/named "$this | map(.items) | add $near"
holds "by name, as many timed" $dir/named "$this | map(.timed) | add $seen"
expect_no_probes

note "-- a scope write while it watches"
# The emulator has problems if probes come and go under load, so top starts before the load and ends after it.
wq=$(wq_of c0)
wq-tunectl top "$wq" --json -d 0.5 >$dir/reset &
pid=$!
wait_until 30 test -s $dir/reset || fail "no line"
load_on c0
lines() { [ "$(wc -l <$dir/reset)" -ge "$1" ]; }
wait_until 30 lines 5
other_scope >"$workqueues/$wq/affinity_scope"
wait_until 30 lines 10
load_off
kill -TERM $pid
wait $pid
echo default >"$workqueues/$wq/affinity_scope"
this='[.[].workqueues[]]'
jq -sc "$this | map([.total, .items, .reset])" $dir/reset
holds "it says so" $dir/reset "$this"' | any(.reset)'
holds "no items that were not there" $dir/reset "$this"' | all(.items <= .timed * 1.2 + 50 and .per_second >= 0)'
holds "CPU time that went is not told" $dir/reset "$this"' | all((.cpu == null) == .reset)'
holds "the wait is seen in the interval after it" $dir/reset "$this"' | map(.timed) | .[-4] > 0 and .[-3] > 0'
wq-tunectl top --once
wq-tunectl top --once --functions
COLUMNS=40 wq-tunectl top "$wq" -n 2 -d 0.5 >$dir/narrow
cat $dir/narrow
check_eq "wider than 40" 0 "$(grep -c '.\{41\}' $dir/narrow || true)"

note "-- on a terminal"
in_pty() { # COMMAND: runs it on a terminal, with stdin as the keys; writes $dir/{typescript,rc,before,after}
  printf '%s\n' "stty rows 24 cols 80; stty -g >$dir/before; $1; echo \$? >$dir/rc; stty -g >$dir/after" >$dir/command
  script -qefc "bash $dir/command" $dir/typescript >/dev/null
  check_eq "the terminal is as it was" "$(cat $dir/before)" "$(cat $dir/after)"
}
shows() { grep -q ITEMS/S $dir/typescript; }
: >$dir/typescript
{ wait_until 30 shows; printf '>>r'; sleep 0.5; printf q; } | in_pty "wq-tunectl top -d 0.3"
check_eq "q: exit code" 0 "$(cat $dir/rc)"
shows || fail "no table: $(cat -v $dir/typescript)"
grep -q $'\e\[?1049l' $dir/typescript || fail "the screen was not given back: $(cat -v $dir/typescript)"
shows_help() { grep -q rescuer $dir/typescript; }
keys_of_views() { # ?: help; any key: the table; q
  wait_until 30 shows && printf '?'
  wait_until 30 shows_help && printf x
  sleep 1
  printf q
}
: >$dir/typescript
in_pty "wq-tunectl top -d 0.3" < <(keys_of_views)
check_eq "help and back: exit code" 0 "$(cat $dir/rc)"
shows_help || fail "no help: $(tail -c 4000 $dir/typescript | cat -v)"
for signal in TERM INT HUP; do
  : >$dir/typescript
  { wait_until 30 shows; kill -$signal "$(pidof wq-tunectl)"; sleep 0.5; } | in_pty "wq-tunectl top -d 0.3"
  check_eq "SIG$signal: exit code" 0 "$(cat $dir/rc)"
  grep -q $'\e\[?1049l' $dir/typescript || fail "SIG$signal: the screen was not given back"
done
: >$dir/typescript
resize="(until grep -q TOTAL $dir/typescript; do sleep 0.2; done; stty rows 12 cols 40; stty size >$dir/size) </dev/tty"
rm -f $dir/size
{ wait_until 30 shows; wait_until 30 test -s $dir/size; sleep 2; printf q; } |
  in_pty "$resize & wq-tunectl top -d 0.3; rc=\$?; wait; (exit \$rc)"
check_eq "resized: exit code" 0 "$(cat $dir/rc)"
check_eq "size" "12 40" "$(cat $dir/size)"
# Without TOTAL, for which there is no room. Several spaces may be one space with a repeat count.
grep -qE $'WORKQUEUE( |\e\\[[0-9]+b)*INFL' $dir/typescript || fail "not drawn anew: $(cat -v $dir/typescript)"
in_pty "wq-tunectl top -n 1 -d 0.3" </dev/null
check_eq "-n: exit code" 0 "$(cat $dir/rc)"
shows || fail "-n: no table: $(cat -v $dir/typescript)"
! grep -q $'\e\[' $dir/typescript || fail "-n: not plain: $(cat -v $dir/typescript)"

note "-- a recording shows what was seen"
load_on c0
wq-tunectl top --json --functions -d 0.5 -n 4 --record $dir/recording >$dir/seen
load_off
check_eq "as JSON" "$(cat $dir/seen)" "$(setpriv --reuid=65534 --clear-groups wq-tunectl top --replay $dir/recording --json --functions)"
in_pty "wq-tunectl top --replay $dir/recording" < <(wait_until 30 shows && sleep 4; printf q)
check_eq "q: exit code" 0 "$(cat $dir/rc)"
grep -q 'recorded 20' $dir/typescript || fail "no time: $(cat -v $dir/typescript)"

note "-- nobody reads"
ended() { [[ ! -e /proc/$pid || "$(<"/proc/$pid/stat")" == *") Z "* ]]; }
mkfifo $dir/fifo
# shellcheck disable=SC2217
sleep 120 <$dir/fifo &
reader=$!
wq-tunectl top --json -d 0.1 >$dir/fifo &
pid=$!
sleep 6 # more output than the 64 KiB of the pipe
kill -TERM $pid
wait_until 10 ended || fail "SIGTERM does not end it"
rc=0
wait $pid || rc=$?
check_eq "full pipe: exit code" 0 $rc
rc=0
timeout $((20 * ${patience:-1})) wq-tunectl top --once 2>$dir/err >&- || rc=$?
check_eq "closed: exit code" "1 wq-tunectl: standard output: Bad file descriptor" "$rc $(cat $dir/err)"
kill $reader
expect_no_probes

note "-- refused"
for command in "setpriv --reuid=65534 --clear-groups" "setpriv --bounding-set=-bpf,-perfmon,-sys_admin --inh-caps=-all"; do
  # shellcheck disable=SC2086
  if $command wq-tunectl top --once >$dir/out 2>$dir/err; then fail "watched without privilege"; else check_eq "exit code" 1 $?; fi
  cat $dir/err
  check_eq "lines" 1 "$(wc -l <$dir/err)"
  check_eq "output" "" "$(cat $dir/out)"
  grep -q "BPF is denied" $dir/err || fail "not clear"
done
in_pty "setpriv --reuid=65534 --clear-groups wq-tunectl top" </dev/null
check_eq "on a terminal: exit code" 1 "$(cat $dir/rc)"
! grep -q $'\e\[' $dir/typescript || fail "the terminal was touched: $(cat -v $dir/typescript)"
if wq-tunectl top no-such-workqueue --json >$dir/out 2>$dir/err; then fail "watched nothing"; fi
check_eq "complaint" "wq-tunectl: there is no workqueue 'no-such-workqueue'" "$(cat $dir/err)"
check_eq "output" "" "$(cat $dir/out)"
expect_no_probes
crypt_close_both
