# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 900
# The BPF counters count what happened, and nothing of them stays in the kernel.
# shellcheck disable=SC2016 # the dollars in single quotes are those of jq
. lib.sh
count_work=/usr/lib/wq-tests/count-work
slow_queue=/usr/lib/wq-tests/slow-queue
out=/run/wq-tests/count.json
# From 7.0 on a tracepoint can be preempted (for long in an emulator), and the counters then miss some items.
case $guest_kernel in 6.*) missed=0 ;; *) missed=0.01 ;; esac
err=/run/wq-tests/count.err

# `counting TARGET[,TARGET...] SECONDS [OPTION...]` begins to count; `counted` waits, and shows the counts.
counting() {
  : >"$err" # or the messages of the last run would be used
  "$count_work" "$@" >"$out" 2>"$err" &
  pid=$!
  wait_until 120 grep -q begun "$err" || fail "count-work did not begin: $(cat "$err")"
}
counted_now() { kill -USR1 "$pid"; counted; } # if the time when the load ends is not known before
counted() { wait "$pid" || fail "count-work: $(cat "$err")"; cat "$out"; }
field() { jq -r "$1" "$out"; }
# `holds WHAT EXPRESSION`: fails unless the jq expression is true for the last counts.
holds() { [ "$(jq "$2" "$out")" = true ] || fail "$1: not so: $2"; note "ok: $1"; }
slow_disk() { # MILLISECONDS: makes /dev/nullb0, which answers after this time
  modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=$(($1 * 1000000)) gb=1 bs=4096
}
open_loop() { # makes $loop on that disk
  udevadm control --stop-exec-queue # udev would read the new device
  loop=$(losetup -f --show /dev/nullb0)
}
close_loop() {
  losetup -d "$loop"
  udevadm control --start-exec-queue
  rmmod null_blk
}
parameter=/sys/module/workqueue/parameters/default_affinity_scope
read -r default_scope <"$parameter"
put_back() {
  kill "$slow" 2>/dev/null || true
  udevadm control --start-exec-queue
  losetup -D || true
  rmmod null_blk 2>/dev/null || true
  [ "$(cat "$parameter")" = "$default_scope" ] || echo "$default_scope" >"$parameter"
}
slow=""
trap put_back EXIT

note "-- as many as the kernel itself has counted"
crypt_c0
sysctl -q kernel.bpf_stats_enabled=1
counting "$wq" 14 --tails
note "load: $(load_mbs c0 6 2) MB/s"
counted
sysctl -q kernel.bpf_stats_enabled=0
note "ns per run: $(jq -c '.programs | map_values(.ns / ([.runs, 1] | max) | round)' "$out")"
holds "there was work" '.windows[0].items > 1000'
holds "items are the kernel's, to 0.5%" \
  '(.windows[0] | .items + .lost + .unfinished) as $n | ($n - .kernel | fabs) <= 0.005 * .kernel'
holds "all were seen to end" ".windows[0] | .lost + .unfinished <= $missed * .items"
holds "none on an old pool" '.windows[0].stuck == 0'
holds "latency holds what it is made of" '.windows[0] | .latency > .exec and .tail >= .latency - .exec and .lock > 0'
holds "nothing is missing" '.limits == ""'
holds "each item was timed, or is told as lost" '.windows[0] | (.timed - .items - .lost - .unfinished | fabs) <= 0.005 * .items'
holds "throughput is the kernel's, to 2%" '(.windows[0].throughput * .seconds / .kernel - 1 | fabs) <= 0.02'
holds "CPU time is the kernel's, to 5%" '(.windows[0].cpu * .kernel / .kernel_cpu_ns - 1 | fabs) <= 0.05'
holds "four programs were attached, and then none" '.loaded == 4 and .left == 0'
holds "at most 8 MB of maps" '.map_bytes | . > 1e6 and . <= 8e6'

note "-- as many pools and kworkers as dump has, for each scope and for all that follow the default"
# `like_dump TARGET FILTER`: the counts of TARGET against dump's workqueues that FILTER leaves. kworkers come and go.
like_dump() {
  local try counted dumped
  for try in 1 2 3 4 5; do
    counting "$1" 1
    counted >/dev/null
    counted=$(jq -c '.windows[0] | [.pools, .workers]' "$out")
    dumped=$(wq-tunectl dump --json | jq -c "([.workqueues[] | $2 | .pools[]] | unique) as \$ids |
      [(\$ids | length), ([.pools[] | select(.id as \$id | \$ids | index(\$id)) | .workers] | add)]")
    [ "$counted" != "$dumped" ] || break
  done
  check_eq "pools and kworkers of $1 (try $try)" "$dumped" "$counted"
  [ "$(jq '.[0] >= 1 and .[1] >= .[0]' <<<"$counted")" = true ] || fail "not known"
}
for scope in cpu smt cache system; do
  echo "$scope" >"$workqueues/$wq/affinity_scope"
  like_dump "$wq" "select(.name == \"$wq\")"
done
check_eq "one pool for all CPUs" 1 "$(jq '.windows[0].pools' "$out")"
echo default >"$workqueues/$wq/affinity_scope"
like_dump @default 'select(.kind == "unbound" and .scope == "default")'

note "-- one of seven timed: all are counted"
counting "$wq" 60 --every 7
load_mbs c0 4 2 >/run/wq-tests/mbs
counted_now
holds "items are the kernel's, to 0.5%" \
  '(.windows[0] | .items + .lost + .unfinished) as $n | ($n - .kernel | fabs) <= 0.005 * .kernel and $n > 1000'
holds "one of seven was timed" '.windows[0] | ((.items + .lost + .unfinished) / 7) as $n | (.timed - $n | fabs) <= 8 + 3 * ($n | sqrt)'
holds "their times are what they are made of" '.windows[0] | .latency > .exec and .lock > 0'

note "-- three targets at once, each with its own"
crypt_open c1 1
counting "$wq,$(wq_of c1),@default" 60
load_mbs c0 2 1 >/run/wq-tests/mbs
load_mbs c1 4 1 >/run/wq-tests/mbs
counted_now
crypt_close c1
holds "the named ones are the kernel's, to 0.5%" \
  '.targets[0:2] | all((.kernel - (.windows[0] | .items + .lost + .unfinished) | fabs) <= 0.005 * .kernel and .kernel > 50)'
holds "the default has the others alone" '.targets | (.[2].kernel - .[0].kernel - .[1].kernel) as $others |
  (.[2].windows[0].items - $others | fabs) <= 0.1 * $others + 20'
holds "so has its throughput" '.targets[2] | (.windows[0].throughput * .seconds - .windows[0].items | fabs) <= 0.1 * .windows[0].items + 20'

note "-- two windows share the work between them, and a scope write strands nothing"
counting "$wq" 16 --two
load_mbs c0 11 2 >/run/wq-tests/mbs &
load=$!
sleep 2
other_scope >"$workqueues/$wq/affinity_scope"
wait "$load"
counted
# The write set the kernel's own count to zero.
holds "both windows have items" '[.windows[].items] | min > 300'
holds "all of them ended" "[.windows[] | .lost + .unfinished - $missed * .items] | add <= 0"
holds "after the write next to none is on an old pool" '(.windows | map(.stuck) | add) <= 0.01 * (.windows | map(.items) | add)'
counting "$wq" 8
load_mbs c0 4 2 >/run/wq-tests/mbs
counted
holds "later none at all" '.windows[0] | .stuck == 0 and .items > 300'
echo "default" >"$workqueues/$wq/affinity_scope" 2>/dev/null || true

note "-- work of a known duration: 50 ms"
slow_disk 50
open_loop
counting "$(basename "$loop")" 12
for i in $(seq 1 30); do dd if="$loop" of=/dev/null bs=4k count=1 skip=$((i * 5000)) iflag=direct 2>/dev/null; done
counted
close_loop
holds "one item per read" '.windows[0].items == 30'
holds "it took 50 ms, and what the timer and the emulator add" '.windows[0].exec | . >= 50e6 and . <= 60e6'
holds "queued to ended took no less, and little more" '.windows[0] | .latency >= .exec and .latency <= .exec + 5e6'

note "-- the same, one of three timed"
slow_disk 50
open_loop
counting "$(basename "$loop")" 12 --every 3
for i in $(seq 1 30); do dd if="$loop" of=/dev/null bs=4k count=1 skip=$((i * 5000)) iflag=direct 2>/dev/null; done
counted
close_loop
holds "one item per read" '.windows[0].items == 30'
holds "about one of three was timed" '.windows[0].timed | . >= 6 and . <= 22'
holds "it took 50 ms" '.windows[0].exec | . >= 50e6 and . <= 60e6'

note "-- what is open counts with its age: a read of 8 s in a window of 3, read a second later"
slow_disk 8000
open_loop
counting "$(basename "$loop")" 3 --tails
dd if="$loop" of=/dev/null bs=4k count=1 skip=1000 iflag=direct 2>/dev/null &
read=$!
counted
wait "$read" || true # null_blk has its own time-out
close_loop
holds "one is open" '.windows[0] | .items == 0 and .unfinished == 1 and .lost == 0'
holds "it is 3 to 5 s old" '.windows[0] | .latency >= .exec and .exec >= 3e9 and .latency <= 5e9'

# `slowly WORKQUEUE` makes its queue_work() take 0.5 to 8 ms; `quickly` ends this, and shows slow-queue's times.
slowly() {
  : >"$err.slow"
  "$slow_queue" "$1" >"$out.slow" 2>"$err.slow" &
  slow=$!
  wait_until 120 grep -q begun "$err.slow" || fail "slow-queue did not begin: $(cat "$err.slow")"
}
quickly() { kill "$slow"; wait "$slow" || fail "slow-queue: $(cat "$err.slow")"; slow=""; cat "$out.slow"; }

note "-- what a producer spends in queue_work(), by a clock of its own"
writes=400 # an item for each block
udevadm settle
udevadm control --stop-exec-queue # udev would read the device after a write
slowly "$wq"
counting "$wq" 120 --enqueue
dd if=/dev/zero of=/dev/mapper/c0 bs=4k count=$writes oflag=direct 2>/dev/null
counted_now
quickly
jq -s '.[0] * {own: .[1]}' "$out" "$out.slow" >"$out.both"
mv "$out.both" "$out"
holds "nothing is missing" '.limits == ""'
holds "each write was timed, by both" ".own.items == $writes and .windows[0].enqueued.items == $writes and .windows[0].timed == $writes"
holds "the clock has the known times, and what the emulator adds" '.own | .p50 >= 5e5 and .p90 >= 2e6 and .p95 >= 4e6 and .p99 >= 8e6 and .mean >= 1.38e6'
holds "the mean is that of the clock, to 10%" '(.windows[0].enqueue / .own.mean - 1 | fabs) <= 0.1'
holds "so are the percentiles" '.own as $own | .windows[0].enqueued | all(("p50", "p90", "p95", "p99") as $p | .[$p] / $own[$p] - 1 | fabs; . <= 0.1)'
holds "little of it is the lock" '.windows[0] | .lock != null and .lock < 0.1 * .enqueue'
holds "five programs were attached, and then none" '.loaded == 5 and .left == 0'
holds "at most 8 MB of maps" '.map_bytes <= 8e6'

note "-- contention: many CPUs on one pool, and one CPU"
# diagnose compares with the lowest wait of another workqueue: that of c1, on which nobody waits.
udevadm control --start-exec-queue
crypt_open c1 1
udevadm settle
udevadm control --stop-exec-queue
# `issued_by CPUS`: writes of 4 kB from each of CPUS, one after the other; their lock wait and its share.
issued_by() {
  local cpu issuers=()
  slowly "$wq"
  wq-tunectl diagnose --json --seconds 600 >"$out" 2>"$err" &
  pid=$!
  wait_until 60 sees_functions || fail "diagnose did not load"
  sleep 4 # it attaches, and begins to count
  for cpu in "$@"; do
    taskset -c "$cpu" dd if=/dev/zero of=/dev/mapper/c0 bs=4k count=200 seek=$((cpu * 200)) oflag=direct 2>/dev/null &
    issuers+=($!)
  done
  wait "${issuers[@]}" || fail "dd: exit code $?"
  taskset -c 0 dd if=/dev/zero of=/dev/mapper/c1 bs=4k count=200 oflag=direct 2>/dev/null
  kill -INT "$pid"
  counted >/dev/null
  quickly
  jq -c '.workqueues[] | select(.name == "'"$wq"'")' "$out" | tee "$out.one"
  mv "$out.one" "$out"
}
sees_functions() { "$count_work" --loaded | jq -e 'has("wqt_top_tick")' >/dev/null; }
echo system >"$workqueues/$wq/affinity_scope"
issued_by 1 2 3 4 5 6 7
holds "many: the lock is much of the latency" '.contention_ns > 1e6 and .contention_share > 0.2'
many=$(field .contention_ns)
holds "queue_work() takes at least the known times" '.enqueue_ns | .p50 >= 5e5 and .p50 <= .p90 and .p90 <= .p95 and .p95 <= .p99'
issued_by 1
holds "one: next to none" ".contention_ns != null and .contention_ns < $many / 10 and .contention_share != null and .contention_share < 0.05"
holds "queue_work() takes the known times" '.enqueue_ns | .p50 >= 4.5e5 and .p90 >= 1.8e6 and .p99 >= 7e6'
echo default >"$workqueues/$wq/affinity_scope"
udevadm control --start-exec-queue
udevadm settle
crypt_close c1

note "-- all that follow the default scope"
counting @default 60
for _ in 1 2 3; do dd if=/dev/zero of=/dev/mapper/c0 bs=1M count=20 2>/dev/null; sync; done
counted_now # after the work: the kernel counts what began, and we what was queued
holds "items are the kernel's, roughly" '(.windows[0] | .items + .lost + .unfinished) as $n | .kernel > 20 and ($n - .kernel | fabs) <= 0.1 * .kernel + 20'

note "-- work that is queued while it runs stays on the old pool, and is seen there"
# One work item serves all requests to a loop device: at the second read it is still running, for two seconds.
slow_disk 2000
open_loop
read_at() { dd if="$loop" of=/dev/null bs=4k count=1 skip="$1" iflag=direct 2>/dev/null; }
counting "$(basename "$loop")" 14 --two
read_at 1000 &
sleep 0.6
read_at 9000
sleep 4
read_at 20000 &
sleep 0.3
other_scope >"$parameter"
sleep 0.3
read_at 30000
counted
echo "$default_scope" >"$parameter"
close_loop
holds "none without a change of scope" '.windows[0] | .items >= 2 and .stuck == 0'
holds "one after it" '.windows[1] | .items >= 2 and .stuck == 1'

note "-- reading traffic loads its programs once"
"$count_work" --cost | tee "$out"
holds "none was loaded after the first call" '.programs_more == 0'

note "-- refused"
for command in "setpriv --reuid=65534 --clear-groups" "setpriv --bounding-set=-bpf,-perfmon,-sys_admin --inh-caps=-all"; do
  # shellcheck disable=SC2086
  if $command "$count_work" "$wq" 1 >"$out" 2>"$err"; then fail "counted without privilege"; else check_eq "exit code" 1 $?; fi
  cat "$err"
  check_eq "lines" 1 "$(wc -l <"$err")"
  grep -q "BPF is denied" "$err" || fail "not clear"
done
if "$count_work" no-such-workqueue 1 2>"$err"; then fail "counted nothing"; fi
check_eq "complaint" "there is no workqueue 'no-such-workqueue'" "$(cat "$err")"

note "-- inside the service's sandbox"
drop_in wq-tuned.service <<EOT
[Service]
Type=oneshot
ExecStart=
ExecStart=$count_work $wq 3
ExecStopPost=
Restart=no
EOT
load_on c0
systemctl start wq-tuned || { journalctl -u wq-tuned -n 5 --no-pager; fail "the sandbox does not let it count"; }
load_off
journalctl --sync
journalctl -u wq-tuned -o cat -n 20 --no-pager | grep '"target"' >"$out"
cat "$out"
holds "it counts" '.limits == "" and .windows[0].items > 0'

expect_no_probes
crypt_close c0
