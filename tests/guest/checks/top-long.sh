# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 500
# `wq-tunectl top` does not grow in a thousand intervals, under load and with workqueues that come and go.
. lib.sh
out=/run/wq-tests/top-long
crypt_open c0
wq-tunectl top --functions --json -d 0.1 -n 1000 >$out &
pid=$!
lines() { wc -l <$out; }
at_least() { [ "$(lines)" -ge "$1" ]; }
rss() { awk '/^RssAnon/ {print $2}' /proc/$pid/status; }
# Attach the probes before the load, and detach them after it: the emulator has problems otherwise.
wait_until 60 at_least 1 || fail "no line"
load_on c0 1
wait_until 60 at_least 50 || fail "too slow"
early=$(rss)
devices=0
while ! at_least 950; do
  crypt_open c1 1
  sleep 2
  crypt_close c1
  devices=$((devices + 1))
done
late=$(rss)
kill -0 "$load" || fail "the load ended by itself"
load_off
wait $pid || fail "exit code $?"
check_eq "lines" 1000 "$(lines)"
note "RssAnon at 50 intervals $early kB, at 950 $late kB; $devices devices came and went"
[ "$late" -le $((early + 256)) ] || fail "it grew"
jq -s '[.[].seconds] | {mean: (add / length), longest: max}' $out
expect_no_probes
crypt_close c0
rm $out
