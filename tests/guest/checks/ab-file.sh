# SPDX-License-Identifier: LGPL-2.1-or-later
# `wq-tunectl ab` with a file of /sys and with commands: everything is restored exactly, at whatever point it
# is killed.
# timeout: 420
. lib.sh

crypt_c0
file=/sys/devices/virtual/workqueue/$wq/max_active
left=/run/wq-tuned/lab.json
here=$(mktemp -d)
set=$here/set # exists while the arm `on` is in place
content() { cat "$1" && echo .; } # $() removes trailing newlines
original=$(cat "$file")
before=$(content "$file")
file_back() { [ "$(content "$file")" = "$before" ] && [ ! -e $left ] && no_guardians; }
arm_back() { [ ! -e "$set" ] && [ ! -e $left ] && no_guardians; }
on=(--arm on --do "touch $set" --undo "rm $set")
values=(--file "$file" --values "3,5")
fails() { # WHAT WORDS ARGUMENTS...
  local what=$1 words=$2 code=0
  shift 2
  wq-tunectl ab "$@" 2>"$here/err" || code=$?
  check_eq "$what" "1 1" "$code $(grep -c "^wq-tunectl: .*$words" "$here/err")"
}

note "-- a file"
wq-tunectl ab "${values[@]}" --pairs 3 --json -- sh -c "cat $file >>$here/seen" >"$here/ab.json" || fail "exit code $?"
check_eq "three runs of each value" "3 3" "$(grep -cx 3 "$here/seen") $(grep -cx 5 "$here/seen")"
check_eq "the report" "$file 3 5" "$(jq -r '"\(.target) \(.arms[0].arm) \(.arms[1].arm)"' "$here/ab.json")"
file_back || fail "left: $(cat "$file")"

note "-- a file that shows its choices in brackets, one that shows Y for 1"
hugepages=/sys/kernel/mm/transparent_hugepage/enabled
parameter=/sys/module/printk/parameters/always_kmsg_dump
for each in "$hugepages never,madvise" "$parameter 0,1"; do
  read -r path words <<<"$each"
  [ -w "$path" ] || { note "no $path here"; continue; }
  was=$(content "$path")
  wq-tunectl ab --file "$path" --values "$words" --pairs 1 -- true || fail "$path: exit code $?"
  check_eq "$path" "$was" "$(content "$path")"
done

note "-- refused"
fails "outside" "is not below /sys or /proc" --file /etc/hostname --values a,b -- touch "$here/ran"
fails "a value that it does not take" "Invalid argument" --file "$file" --values 3,many -- touch "$here/ran"
[ ! -e "$here/ran" ] || fail "the command ran"
file_back || fail "left: $(cat "$file")"

note "-- an external writer"
fails "it ends" "an external writer wrote '7'" "${values[@]}" -- sh -c "echo 7 >$file"
check_eq "its value stays" 7 "$(cat "$file")"
echo "$original" >"$file"
file_back || fail "left: $(cat "$file")"

note "-- commands"
wq-tunectl ab "${on[@]}" --pairs 3 -- sh -c "if [ -e $set ]; then echo on; else echo off; fi >>$here/arms" || fail "exit code $?"
check_eq "three runs of each arm" "3 3" "$(grep -cx on "$here/arms") $(grep -cx off "$here/arms")"
arm_back || fail "left: $(cat $left)"
fails "a command that fails" "arm on: .*: exit code 3: no such device" \
  --arm on --do "touch $set; echo no such device; exit 3" --undo "rm $set" -- true
arm_back || fail "left: $(cat $left)"

note "-- an undo that fails"
fails "it is shouted about" "arm on: NOT UNDONE: .*: exit code 4: busy" \
  --arm on --do "touch $set" --undo "[ -e $here/repaired ] || { echo busy; exit 4; }; rm $set" -- true
check_eq "it is on disk" "arm on" "$(jq -r .entries[0].target $left)"
fails "nothing begins" "settings or devices of an earlier ab, bench or comparison could not be restored" "${values[@]}" -- true
fails "still" "NOT UNDONE" --restore
touch "$here/repaired"
wq-tunectl ab --restore || fail "exit code $?"
arm_back || fail "left: $(cat $left)"

set -m # each in its own process group
# Starts `ab ARGUMENTS` and kills its group with SIGNAL after SECONDS.
cut_off() { # SIGNAL SECONDS ARGUMENTS...
  local signal=$1 seconds=$2
  shift 2
  wq-tunectl ab "$@" --all-pairs --pairs 1000 -- sleep 0.02 2>"$here/err" &
  ab=$!
  sleep "$seconds"
  kill -s "$signal" -- -$ab || fail "it ended by itself: $(cat "$here/err")"
  wait $ab 2>/dev/null || true
}
note "-- killed at any point"
for seconds in 0.01 0.03 0.06 0.1 0.2 0.3 0.5 0.75 1 1.4; do
  for signal in KILL TERM; do
    cut_off $signal $seconds "${values[@]}"
    wait_until 10 file_back || fail "SIG$signal after $seconds s left: $(cat "$file" $left)"
    cut_off $signal $seconds --arm on --do "touch $set; sleep 0.05" --undo "sleep 0.05; rm -f $set"
    wait_until 10 arm_back || fail "SIG$signal after $seconds s left: $(cat $left)"
  done
done

note "-- the guardian is killed too"
both_killed() { # ARGUMENTS...
  rm -f "$here/ran"
  wq-tunectl ab "$@" -- sh -c "[ ! -e $left ] || { touch $here/ran; exec sleep 1234; }" 2>"$here/err" &
  ab=$!
  wait_until 20 test -e "$here/ran" || fail "no run: $(cat "$here/err")"
  kill -KILL "$(pgrep -x wq-ab-guardian)" $ab
  wait $ab 2>/dev/null || true
  pkill -xf 'sleep 1234' || true
  wait_until 10 no_guardians || fail "the guardian lives"
  [ -e $left ] || fail "nothing is on disk"
}
both_killed "${values[@]}"
! file_back || fail "it does not hold an arm"
wq-tunectl ab --restore || fail "exit code $?"
file_back || fail "left: $(cat "$file" $left)"
both_killed "${on[@]}"
[ -e "$set" ] || fail "the arm is not in place"
wq-tunectl ab "${values[@]}" --pairs 1 -- true || fail "exit code $?"
arm_back || fail "the next ab does not undo it: $(cat $left)"
both_killed "${values[@]}"
echo 7 >"$file"
wq-tunectl ab --restore || fail "exit code $?"
check_eq "an external writer's value stays" 7 "$(cat "$file")"
echo "$original" >"$file"
file_back || fail "left: $(cat "$file" $left)"
