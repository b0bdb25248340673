#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The two programs without a daemon: exit codes, one-line error messages, output widths. cli_test.sh BIN-DIR
set -uo pipefail
bin=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }

expect() { # EXIT-CODE ARGUMENTS...
  local want=$1 code=0
  shift
  "$bin/wq-tunectl" "$@" >"$root/out" 2>"$root/err" </dev/null || code=$?
  [ "$code" = "$want" ] || complain "wq-tunectl $*: exit $code, not $want: $(cat "$root/err")"
}
one_line() { [ "$(wc -l <"$root/err")" = 1 ] || complain "$1: not one line: $(cat "$root/err")"; }
# The error message is one line: the program's name, what is wrong, and what to do instead.
says() { # EXIT-CODE WORDS ARGUMENTS...
  local want=$1 words=$2
  shift 2
  expect "$want" "$@"
  one_line "$*"
  grep -q '^wq-tunectl: ' "$root/err" || complain "$*: without the program's name: $(cat "$root/err")"
  grep -qF -- "$words" "$root/err" || complain "$* does not say '$words': $(cat "$root/err")"
}
synthetic='synthetic:pack:2 l3:1 core:12 pu:2'

for usage in "nothing" "plan --nothing" "plan --shard-size 0" "plan --shard-size x" "topology --shard-size 65537" \
  "topology --kernel-scopes cpu" "plan --kernel-scopes cpus" "plan --kernel-scopes cpu,cpu" "pin one" "explain" "revert" "revert --all x" \
  "history --ledger --json" "fleet" \
  "fleet merge" "fleet show" "fleet melt x" "fleet show --fdr 5% x" "fleet show --shard 1/2 x" "fleet merge --json x" "fleet merge --worth x" \
  "fleet merge --shard 0/2 x" "fleet merge --shard 3/2 x" "fleet merge --shard 1 x" "fleet policy --fdr 0% x" "fleet policy --fdr 51% x" "fleet policy --fdr 5 x" \
  "judge" "judge one.csv two.csv" "judge --alpha 0 x" "judge --tolerance 5 x" "judge --candidates 101 x" "judge --run-length 20 x" "judge --bogus 1 x" \
  "ab --values 1,2 -- true" "ab --file /sys/x --values 1,1 -- true" "ab --file /sys/x --values 1,,2 -- true" \
  "ab --file /sys/x --values 1 --values 1 -- true" "ab --file /sys/x --values 1,2 --target x -- true" "ab --file /sys/x --values 1,2 --arms cache,smt -- true" \
  "ab --file /sys/x --values 1,2 --arm a --do a --undo a -- true" "ab --do a --undo a -- true" "ab --arm a --do a --undo a --arm a --do b --undo b -- true" \
  "ab --arm a --do a --undo a --target x -- true" "ab --arm a --do a --undo a --sweep -- true" "ab --restore --target x" \
  "ab --target x --arms cache,smt --metric nogroup -- true" "ab --target x --arms cache,smt --metric (a)(b) -- true" "ab --target x --arms cache,smt --metric (a -- true" \
  "ab --target x --arms cache,smt --higher-is-better -- true" "ab" "ab --target x -- true" "ab --target x --arms cache,smt" \
  "ab --target x --arms cache,smt true" "ab --target x --arms cache -- true" "ab --target x --arms cache,smt --sweep -- true" \
  "ab --file /sys/x -- true" "ab --file /sys/x --values 1 -- true" "ab --arm x -- true" "ab --arm x --do y -- true" "ab --restore -- true" "ab --restore --json" "ab --file x --values 1,2 -- true" "ab --arm reference --do y --undo z -- true" \
  "top --interval 0.05" "top --interval 3601" "top -d nan" "top -d 1s" "top -n 0" "top -n 1.5" "top --once -n 2" "top --sort nothing" \
  "top --sort busy" "top --functions --sort p99" "diagnose --seconds 0.4" "diagnose --seconds 3601" "diagnose --seconds 5s" "diagnose writeback" \
  "diagnose --seconds" "status --seconds 5" "top --record a --replay b" \
  "top --replay a -d 2" "bench --seconds 0" "bench --seconds 61" "bench --rounds 0" "bench --seconds 1s" "bench --load" "bench --threads 0" "bench --rounds 010" "bench --threads 1025" "bench --load trim" \
  "bench --compare a" "bench --restore --json" "bench --restore --rounds 1" "bench writeback"; do
  # shellcheck disable=SC2086
  expect 2 $usage
done
expect 2 plan --kernel-scopes '' --topology "$synthetic"
# An empty value (an unset variable in a script) is an error: it must not mean the default or another path.
expect 2 plan --topology ''
expect 2 plan --topology "$synthetic" --config ''
expect 2 plan --topology "$synthetic" --shard-size 014
expect 2 compare x --with ''
expect 2 top --once --sort ''
expect 2 dump --diff ''
expect 2 top --record ''
printf '%s\n%s' '{"time":1700000000,"seconds":2.0,"lost":0,"limits":"","workqueues":[]}' '{"time":17' >"$root/recording"
expect 1 top --replay "$root/recording" --json
[ "$(cat "$root/out")" = '{"time":1700000000,"seconds":2.0,"lost":0,"limits":"","workqueues":[]}' ] || complain "replay: $(cat "$root/out")"
one_line "a recording that was cut off"
says 1 '' top --replay /nowhere --once
expect 2 --root "$root" bench
[ ! -e "$root/run" ] || complain "bench on a tree made $root/run"
expect 2 judge ''
expect 2 fleet merge ''
expect 2 bench -o ''
expect 2 ab --arm a --do a --undo '' -- true
for command in "revert --all" pause resume reload status history undo check; do
  for bad in "" /nowhere; do
    # shellcheck disable=SC2086
    expect 2 --root "$bad" $command
    grep -qF -- --root "$root/err" || complain "--root '$bad' $command: $(cat "$root/err")"
  done
done
# judge waits for input that arrives late.
"$bin/wq-tunectl" judge <(sleep 0.3; printf 'trial,pair,arm,counter,value\n1,1,baseline,latency,5\n1,1,candidate,latency,6\n') \
  >"$root/out" 2>"$root/err" || complain "judge of a slow pipe: $(cat "$root/err")"
for word in bogus --bogus; do says 2 "'$word'" $word; done
says 2 'did you mean "status"?' stat
says 2 "unknown option '--foo'; see wq-tunectl status --help" status --foo # not: did you mean --root
says 2 "'foo' is not one of cpu, smt, cache_shard, cache, numa, system" pin x foo
says 2 "--with: 'foo' is not one of cpu, smt, cache_shard, cache, numa, system" compare x --with foo
says 2 'name a target, or give --all' revert
says 2 '--pairs: must be 1 to 10000' ab --target x --arms cache,smt --pairs 0 -- true
says 2 "--alpha: must be above 0 and at most 0.5" judge --alpha 5% x
says 2 "--alpha: must be above 0 and at most 0.5" judge --alpha 5 x
says 2 '--max-pairs: must be 1 to 10000' judge --max-pairs 0 x
says 2 "unknown option '--nothing'; see wq-tunectl plan --help" plan --nothing
says 2 "unknown option '--jsn'; did you mean \"--json\"?" plan --jsn=3 more
says 2 "unknown option '--vrsion'; did you mean \"--version\"?" --vrsion
says 2 "unknown option '-x'; see wq-tunectl explain --help" explain -x
says 2 "unexpected argument 'more'; see wq-tunectl pin --help" pin x smt more
says 2 "--config is given twice; see wq-tunectl plan --help" plan --config a --config b
says 2 "--config needs a value; see wq-tunectl plan --help" plan --config
for flag in --json=false --boot=-1 --no-pager=0; do expect 2 plan --topology "$synthetic" $flag; done
expect 1 plan --topology "$synthetic" --config --json=1 # --json=1 is the file of --config
expect 3 --root "$root"
grep -q '^TARGET ' "$root/out" || complain "without a command: $(cat "$root/out")"
# --json may stand before the command.
for words in "--json plan --topology" "--root $root --json plan --topology" "--json --root $root plan --topology" "plan --json --topology"; do
  # shellcheck disable=SC2086
  expect 0 $words "$synthetic"
  grep -q '^{' "$root/out" || complain "$words: $(cat "$root/out")"
done
expect 2 --json pin x smt
DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nowhere expect 3 --json
grep -q '"state":"absent"' "$root/out" || complain "--json: $(cat "$root/out")"
expect 0 plan --root "$root" --topology "$synthetic"
expect 0 --version
grep -qx 'wq-tunectl [0-9.]*\(~git[0-9a-z.]*\)\?' "$root/out" || complain "--version: $(cat "$root/out")"
for bad in live:x nothing xml: fsroot: synthetic:; do
  for command in topology plan report; do
    says 2 "'$bad' is not live, fsroot:DIR, xml:FILE or synthetic:DESC" "$command" --topology "$bad"
  done
done
for command in topology plan explain\ x report; do
  for bad in fsroot:/nowhere xml:/nowhere; do
    # shellcheck disable=SC2086
    says 1 '' $command --topology "$bad"
  done
  # shellcheck disable=SC2086
  says 2 '--topology: synthetic:nonsense: not a synthetic topology' $command --topology synthetic:nonsense
done
says 1 '' explain nothing --topology "$synthetic"
expect 1 plan --config /nowhere.toml
expect 1 topology --config /nowhere.toml --topology "$synthetic"
one_line "topology --config /nowhere.toml"

says 1 '' --root "$root" ab --target x --arms cache,smt -- plan --json
[ ! -e "$root/run" ] || complain "ab on a tree without CPUs made $root/run"
expect 2 --root "$root/typo" ab --target x --arms cache,smt -- true
[ ! -e "$root/typo" ] || complain "ab in no directory made one"

expect 0 ab --help
grep -q 'Usage: .* \[OPTIONS\] -- COMMAND\.\.\.$' "$root/out" || complain "ab --help: $(cat "$root/out")"
expect 0 --root "$root" cat-config
cp "$root/out" "$root/merged.toml"
expect 0 check "$root/merged.toml"
expect 0 cat-config --config "$root/merged.toml" --json
expect 1 cat-config --config /nowhere.toml
one_line "cat-config --config /nowhere.toml"
for command in "revert" "unpin" "compare" "explain" "history"; do
  expect 2 --root "$root" "$command" ""
done
expect 2 top ""
expect 2 --root "$root" pin "" smt
for live in diagnose "top --once"; do
  # shellcheck disable=SC2086
  expect 2 --root "$root" $live
  [ ! -s "$root/out" ] || complain "$live in a tree: $(cat "$root/out")"
done
for order in "pin one smt" "unpin one" "revert --all" "revert one" pause resume reload; do
  # shellcheck disable=SC2086
  says 3 '' --root "$root" $order
done

for order in pause "compare one --with smt"; do
  # shellcheck disable=SC2086
  DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nowhere says 3 'the daemon cannot be reached: system bus: ' $order
done

# A tree with a workqueue.
tree=$root/tree
wq=$tree/sys/devices/virtual/workqueue/kcryptd_io-254:0-1-of-31-letters
mkdir -p "$wq" "$tree/etc/wq-tuned" "$tree/run/wq-tuned"
echo 'default (cache)' >"$wq/affinity_scope"
echo 0 >"$wq/affinity_strict"
echo 0 >"$wq/per_cpu"
echo 256 >"$wq/max_active"
echo ff >"$wq/cpumask"
expect 2 explain '*' --boot

interleaved='synthetic:pack:2 l3:2 core:13 pu:2(indexes=52*2:1*52)'
fits() { # COLUMNS ARGUMENTS...
  local columns=$1 widest
  shift
  COLUMNS=$columns expect "$@"
  widest=$(wc -L <"$root/out")
  [ "$widest" -le "$columns" ] || complain "$* is $widest wide on $columns columns: $(cat "$root/out")"
}
mkdir -p "$root/judged/var/lib/wq-tuned"
printf '%s' '{"version":1,"number":1,"kernel":"6.12 cpu smt cache numa system","topology":"another","scheduler":"","class":"kcryptd-#","reference":"cache",' \
  '"candidate":"smt","reference_origin":"kernel","partitions":["",""],' \
  '"counters":"","window":"","target":"kcryptd-7","cpus":"0-7","time":1000000000,"comparison":1,"judged":true,"verdict":"regressed",' \
  '"reason":"","counter":"latency","pairs":7,"e_regressed":41.5,"e_improved":0.1,"effect_percent":12.5,"interval_percent":null,"alpha":0.05,"tolerance":0,"max_pairs":64,"contention":null,"differences":[]}' $'\n' >"$root/judged/var/lib/wq-tuned/verdicts.log"
for columns in 60 80; do
  for command in "" status plan ab bench report; do
    # shellcheck disable=SC2086
    fits $columns 0 $command --help
  done
done
for columns in 40 80; do
  fits $columns 0 --root "$root/judged" history
  grep -q overstated "$root/out" || complain "history: $(cat "$root/out")"
  for source in "$synthetic" "$interleaved"; do
    fits $columns 0 plan --topology "$source"
    fits $columns 0 explain '*' --topology "$source"
    fits $columns 0 topology --topology "$source"
    fits $columns 0 plan --boot --shard-size 4 --topology "$source" --kernel-scopes cpu,smt,cache_shard,cache,numa,system
  done
  fits $columns 3 --root "$tree" status
done
# report writes a complete page, or nothing.
expect 2 report -o ''
expect 0 report -o "$root/page.html" --topology "$synthetic"
[ ! -s "$root/out" ] || complain "report to a file prints: $(cat "$root/out")"
expect 0 report -o - --topology "$synthetic"
[ "$(grep -o ' data-core="' "$root/out" | wc -l) $(tail -n 1 "$root/out")" = "24 </html>" ] || complain "report -o -"

# If an error message cannot be written, the program does not abort. Unwritten results are an error.
for command in "plan --topology xml:/nowhere" "plan --topology nothing" "dump no-such-workqueue" "topology --config /nowhere.toml" "bogus"; do
  code=0
  # shellcheck disable=SC2086
  "$bin/wq-tunectl" $command >/dev/null 2>/dev/full || code=$?
  [ $code = 1 ] || [ $code = 2 ] || complain "wq-tunectl $command 2>/dev/full: exit $code"
done
full() { # ARGUMENTS...
  local code=0
  "$bin/wq-tunectl" "$@" >/dev/full 2>"$root/err" || code=$?
  [ $code = 1 ] || complain "wq-tunectl $* >/dev/full: exit $code"
  one_line "$* >/dev/full"
  grep -Eq '^wq-tunectl: (writing: |.*No space left on device)' "$root/err" || complain "$* >/dev/full: $(cat "$root/err")"
}
full plan --topology "$synthetic"
full topology --json --topology 'synthetic:pack:8 l3:8 core:8 pu:2' # larger than stdio's buffer
full --help
full --version
# stdout is closed. (The guest check of `top` tests that no file opened later takes its place.)
code=0
"$bin/wq-tunectl" plan --topology "$synthetic" 2>"$root/err" <&- >&- || code=$?
[ "$code $(cat "$root/err")" = "1 wq-tunectl: writing: Bad file descriptor" ] || complain "plan >&-: exit $code, $(cat "$root/err")"

# On a terminal. (Skipped if script is the BSD one, or not installed.)
on_terminal() { # VARIABLE=VALUE ARGUMENTS...
  local code=0
  env SHELL=/bin/sh "$1" script -qec "$(printf '%q ' "$bin/wq-tunectl" "${@:2}")" /dev/null </dev/null >"$root/out" 2>&1 || code=$?
  [ $code = 0 ] || complain "$* on a terminal: exit $code: $(cat "$root/out")"
}
export TERM=xterm
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
  # If the pager cannot be run, the output is still shown.
  for pager in /nonexistent "$root" 'tr T t'; do
    on_terminal "SYSTEMD_PAGER=$pager" plan --topology "$synthetic"
    grep -qi 'target.*scope.*reason' "$root/out" || complain "SYSTEMD_PAGER='$pager': $(cat "$root/out")"
  done
  for term in '' dumb unknown; do # no pager on a dumb terminal either
    TERM=$term on_terminal SYSTEMD_PAGER=false plan --topology "$synthetic"
    grep -q '^TARGET' "$root/out" || complain "TERM='$term': $(cat "$root/out")"
  done
else echo "not tested here: output on a terminal"; fi

# An exit code after which the unit does not restart the daemon.
mkdir -p "$root/held/run/wq-tuned"
# shellcheck disable=SC2016
flock "$root/held/run/wq-tuned/lock" sh -c '"$0" --root "$1" >/dev/null 2>&1; echo $?' "$bin/wq-tuned" "$root/held" >"$root/out"
[ "$(cat "$root/out")" = 75 ] || complain "wq-tuned under a held lock: exit $(cat "$root/out")"
grep -qx "RestartPreventExitStatus=75" "${0%/*}/../../units/wq-tuned.service.in" || complain "the unit tries 75 again"

"$bin/wq-tuned" --version | grep -qx 'wq-tuned [0-9.]*\(~git[0-9a-z.]*\)\?' || complain "wq-tuned --version: $("$bin/wq-tuned" --version)"
code=0
"$bin/wq-tuned" --nothing >/dev/null 2>&1 || code=$?
[ $code = 2 ] || complain "wq-tuned --nothing: exit $code"
exit $failed
