# SPDX-License-Identifier: LGPL-2.1-or-later
# /var/lib/wq-tuned is on a disk that does not answer, in each part of a trial: the daemon takes a scope back
# at once if it has to, the watchdog does not end it, it answers orders, and the evidence is on disk when the
# disk answers again.
# timeout: 1200
. lib.sh

store=/var/lib/wq-tuned
other=$(other_scope)
crypt_c0
crypt_open state 1
mkfs.ext4 -q /dev/mapper/state
mkdir -p $store
mount -o noatime /dev/mapper/state $store
# Like a disk that is gone: a process that waits for it waits in the kernel, and no signal ends the wait.
disk_stops() { dmsetup suspend --noflush --nolockfs state; }
disk_goes_on() { dmsetup resume state; }

# In an emulator writes are slow, and a window may have 10 s so that they take 1% of it; a daemon that waits for the
# disk would keep the candidate for the 25 s of the second stand.
most_in_place=$((15000 * ${patience:-1}))
# The cost is worse while the candidate is in place, unless the file `even` exists. Also records the longest
# time, in ms, for which the candidate was in place.
cost=/run/wq-tests/cost longest=/run/wq-tests/longest even=/run/wq-tests/even
mkfifo /run/wq-tests/never
follow_scope() {
  local word since="" now last="" most told="" thread
  while :; do
    read -r word _ <"$workqueues/$wq/affinity_scope"
    now=$((${EPOCHREALTIME/./} / 1000))
    # After a second without a look it is unknown what was in place meanwhile.
    if [ $((now - ${last:-$now})) -ge 1000 ]; then
      since=""
      note "the follower did not run for $((now - last)) ms"
    fi
    last=$now
    if [ "$word" = "$other" ]; then
      if [ -e $even ]; then echo 10; else echo 20; fi 1<>$cost
      : "${since:=$now}"
      read -r most <$longest || most=0
      [ $((now - since)) -le "$most" ] || echo $((now - since)) >$longest
      if [ $((now - since)) -gt $most_in_place ] && [ "$told" != "$since" ]; then # What does the daemon wait for?
        told=$since
        for thread in /proc/"$(pidof wq-tuned)"/task/*; do
          note "in place for $((now - since)) ms: $(grep State "$thread/status") $(head -n 4 "$thread/stack" | tr '\n' ' ')"
        done
        last=$((${EPOCHREALTIME/./} / 1000))
      fi
    else
      echo 10 1<>$cost
      since=""
    fi
    read -rt 0.02 _ || true
  done <>/run/wq-tests/never
}
echo 10 >$cost
echo 0 >$longest
follow_scope &
follower=$!
load_on c0
put_back() {
  disk_goes_on
  kill $follower 2>/dev/null || true
  load_off
  systemctl stop wq-tuned
  umount $store
  rm -f /run/wq-tests/never
}
trap put_back EXIT

# A watchdog that would end a daemon that hangs for 20 s; a tick every ten seconds. Without BPF, because an
# emulator under load needs longer than that to load it.
trial_policy "auto:$other" "counters = [\"latency\", \"file:$cost\"]"
# The workqueue of the disk itself is not compared: without BPF the daemon does not see that it has no
# traffic.
sed -i "s/^match = .*/match = \"$wq\"/" /etc/wq-tuned/wq-tuned.toml
drop_in wq-tuned.service <<<$'[Service]\nCapabilityBoundingSet=\nWatchdogSec=20s'
reason_has() { trial_of "$wq" reason | grep -q "$1"; }
on_disk() { if [ -e "$verdicts" ]; then jq -s length <"$verdicts"; else echo 0; fi; }
restarts() { systemctl show -P NRestarts wq-tuned; }
locked() { sed -n 's/^VmLck:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$(systemctl show -P MainPID wq-tuned)/status"; }
ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
# `in_time WHAT MOST-MS COMMAND...`
in_time() {
  local what=$1 most=$2 before
  shift 2
  before=$(ms)
  "$@" >/dev/null || fail "$what: exit code $?"
  [ $(($(ms) - before)) -le "$most" ] || fail "$what took $(($(ms) - before)) ms"
  note "ok: $what took $(($(ms) - before)) ms"
}

note "-- the disk stands still when a trial is to begin"
touch $even # so that there is no verdict before the ledger's first write
systemctl start wq-tuned
disk_stops
wait_until 120 reason_has "the disk has not answered" || fail "reason: $(trial_of "$wq" reason)"
note "status: $(trial_of "$wq" reason)"
# A slot needs only /run: a pair may have been measured before the ledger's first write.
[ "$(cat $longest)" -le $most_in_place ] || fail "the candidate was in place for $(cat $longest) ms"
note "ok: the candidate was in place for $(cat $longest) ms"
expect_scope "$wq" default
echo 0 >$longest
sleep 5
check_eq "the candidate is not in place any more" 0 "$(cat $longest)"
disk_goes_on
wait_until 90 state_is "$wq" comparing || fail "no trial: $(trial_of "$wq" reason)"
[ "$(locked)" -gt 0 ] || fail "its memory is not held: $(journalctl -u wq-tuned -o cat)"
note "resident, locked: $(sed -n 's/^\(VmRSS\|VmLck\|VmSize\):[[:space:]]*//p' "/proc/$(systemctl show -P MainPID wq-tuned)/status" | tr '\n' ' ')"

systemctl stop wq-tuned
rm -r $even ${store:?}/*
systemctl start wq-tuned

# If the baseline was in place at the verdict, nothing had to be taken back: then try again.
for stand in 8 25; do
  # shellcheck disable=SC2034
  for try in 1 2 3 4 5 6 7 8; do
    wait_until 120 has_pairs "$wq" 2 || fail "no second pair: $(trial_of "$wq" reason)"
    echo 0 >$longest
    mark
    disk_stops
    wait_until 120 state_is "$wq" reverted || fail "no verdict: $(trial_of "$wq" reason)"
    stood_since=$(ms)
    expect_scope "$wq" default
    check_eq "nothing of the trial is written yet" 0 "$(on_disk)"
    in_time "the status" 2000 wq-tunectl status --json
    while [ $(($(ms) - stood_since)) -lt $((stand * 1000)) ]; do sleep 0.2; done
    check_eq "no memory is held any more" 0 "$(locked)"
    disk_goes_on
    wait_until 10 ended 1 || fail "the verdict is not on disk"
    check_eq "the verdict on disk" regressed "$(verdict verdict)"
    check_eq "restarts by the watchdog" 0 "$(restarts)"
    [ "$(cat $longest)" -le $most_in_place ] || fail "the candidate was in place for $(cat $longest) ms"
    note "ok: $stand s: the candidate was in place for $(cat $longest) ms at most"
    systemctl stop wq-tuned
    rm -r ${store:?}/*
    systemctl start wq-tuned
    taken_back=$(cat $longest)
    [ "$taken_back" -lt 1200 ] || break
  done
  [ "$taken_back" -ge 1200 ] || fail "no candidate was in place at any of $try verdicts"
done

note "-- the daemon is stopped meanwhile"
wait_until 90 has_pairs "$wq" 1 || fail "no pair: $(trial_of "$wq" reason)"
disk_stops
mark
stood_since=$(ms)
systemctl stop --no-block wq-tuned
expect_scope "$wq" default
check_eq "no entry is left" 0 "$(entries)"
said_so() { since_mark | grep -q "not written: the disk does not respond"; }
wait_until 20 said_so || fail "it says nothing: $(since_mark)"
disk_goes_on
is_gone() { [ "$(systemctl show -P ActiveState wq-tuned)" = inactive ]; }
wait_until 30 is_gone || fail "it is $(systemctl show -P ActiveState wq-tuned)"
check_eq "the result" success "$(systemctl show -P Result wq-tuned)"

note "-- the disk takes nothing"
rm -r ${store:?}/*
touch $even
systemctl start wq-tuned
mount -o remount,ro $store # the file system; the unit's own mount, made at its start, is writable
wait_until 60 reason_has "the ledger cannot be written: .*Read-only" || fail "reason: $(trial_of "$wq" reason)"
note "status: $(trial_of "$wq" reason)"
wq-tunectl compare "$wq" --with "$other" 2>/run/wq-tests/err && fail "a trial without a record"
check_eq "a trial by hand is refused in one line" 1 "$(grep -c 'the ledger cannot be written' /run/wq-tests/err)"
expect_scope "$wq" default
wrote=$(daemon_field writes) # by the pair before the ledger's first write, if any
sleep 5
check_eq "nothing more is written to /sys" "$wrote" "$(daemon_field writes)"
mount -o remount,rw $store
wait_until 90 state_is "$wq" comparing || fail "no trial: $(trial_of "$wq" reason)"
