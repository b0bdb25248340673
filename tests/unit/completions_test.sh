#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The completions for wq-tunectl: all options and commands of --help, and the words valid in each position.
# Usage: completions_test.sh bash|zsh|fish BIN-DIR COMPLETIONS-DIR. Exits 77 if the shell is not installed.
set -uo pipefail
shell=$1 bin=$2 dir=$3
here=$(dirname "$0")
command -v "$shell" >/dev/null || { echo "$shell is not installed"; exit 77; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0
PATH=$(realpath "$bin"):$PATH # the completions call the program
export PATH WQ_ZCOMPDUMP=$tree/zcompdump
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }

# The completions at the end of LINE, one per line and sorted, without descriptions.
offers() {
  # shellcheck disable=SC2016 # the other shell expands these
  case $shell in
    bash) bash --norc -c '. "$1" && COMP_LINE=$2 COMP_POINT=${#2} && _wq_tunectl &&
            printf "%s\n" "${COMPREPLY[@]}"' - "$dir/wq-tunectl.bash" "$1" ;;
    zsh) zsh -f "$here/complete.zsh" "$dir" "$1" ;;
    fish) HOME=$tree fish --no-config -c '. $argv[1]; complete -C $argv[2]' "$dir/wq-tunectl.fish" "$1" | cut -f 1 ;;
  esac 2>"$tree/err" | sed 's/ $//; /^$/d' | sort -u
  [ ! -s "$tree/err" ] || cat "$tree/err"
}

expect() { # LINE WORD...
  local line=$1 want got
  shift
  want=$(printf '%s\n' "$@" | sort -u | sed '/^$/d')
  got=$(offers "$line")
  [ "$got" = "$want" ] || complain "after '$line'; < is what should be offered: $(diff <(echo "$want") <(echo "$got"))"
}

options() { "$bin/wq-tunectl" "$@" --help | sed -nE 's/^  (-[a-z],)?(--[a-z-]+)[ :].*/\2/p' | sort; }
commands=$("$bin/wq-tunectl" --help | sed -n '/^Look:/,$s/^  \([a-z-]*\) .*/\1/p' | sort)
[ "$(wc -w <<<"$commands")" -gt 10 ] || complain "--help lists no commands: $commands"
got=$(offers 'wq-tunectl ' | grep -v ^-)
[ "$got" = "$commands" ] || complain "commands; < is --help: $(diff <(echo "$commands") <(echo "$got"))"
for command in '' $commands; do
  # shellcheck disable=SC2046,SC2086 # zero or more words
  expect "wq-tunectl ${command:+$command }--" $(options $command) $(options)
done

workqueues=$tree/sys/devices/virtual/workqueue
mkdir -p "$workqueues"/{writeback,kcryptd-254:0-1,kcryptd_io-254:0-1}
touch "$workqueues"/{writeback,kcryptd-254:0-1}/affinity_scope # kcryptd_io is per-CPU
touch "$workqueues"/{writeback,kcryptd-254:0-1,kcryptd_io-254:0-1}/max_active
# A name in a hostile tree is not executed. (Only bash expands names.)
# shellcheck disable=SC2016
hostile=$workqueues/'$(echo${IFS}ran)'
if [ "$shell" = bash ]; then mkdir "$hostile" && touch "$hostile"/{affinity_scope,max_active}; fi
scopes=(cpu smt cache_shard cache numa system)
targets=(@default kcryptd-254:0-1 writeback)
for command in explain pin unpin revert compare history; do
  expect "wq-tunectl --root $tree $command " "${targets[@]}"
  expect "wq-tunectl --root $tree $command w" writeback
done
expect "wq-tunectl --root $tree pin @" @default
# The live machine. Bash replaces what follows the last ':', so only names without one can be compared here.
live=()
for file in /sys/devices/virtual/workqueue/*/affinity_scope; do
  [ ! -e "$file" ] || live+=("$(basename "${file%/affinity_scope}")")
done
if [[ ${live[*]} == *:* ]]; then echo "not compared here, where a name has a colon: the live machine's"
else expect "wq-tunectl unpin " @default "${live[@]}"; fi
# Bash replaces what follows the last ':'.
if [ "$shell" = bash ]; then expect "wq-tunectl --root=$tree pin kcryptd-254:" 0-1
else expect "wq-tunectl --root=$tree pin kcryptd-254:" kcryptd-254:0-1; fi
expect "wq-tunectl --root $tree pin kcryptd-254:0-1 " "${scopes[@]}"
expect "wq-tunectl --root $tree pin writeback ca" cache_shard cache
expect "wq-tunectl compare --with " "${scopes[@]}"
expect "wq-tunectl --root $tree top " kcryptd-254:0-1 kcryptd_io-254:0-1 writeback
expect "wq-tunectl --root $tree top -d 1 w" writeback
expect "wq-tunectl top --interval "
expect "wq-tunectl diagnose --seconds "
# A flag takes no value: the next word is completed on its own.
# shellcheck disable=SC2046 # words
expect "wq-tunectl plan --json --" $(options plan) $(options)
expect "wq-tunectl --no-pager pl" plan
expect "wq-tunectl --root $tree explain --json " "${targets[@]}"
expect "wq-tunectl top --once --so" --sort
expect "wq-tunectl top --functions --sort wo" workqueue
expect "wq-tunectl top --sort p" p50 p90 p99
expect "wq-tunectl fleet " merge show policy
expect "wq-tunectl compare --json writeback --with s" smt system
expect "wq-tunectl --root $tree ab --target w" writeback
expect "wq-tunectl ab --arms sm" smt
expect "wq-tunectl ab --und" --undo
expect "wq-tunectl bench --rou" --rounds
[ "$shell" != bash ] || offers "wq-tunectl ab --target x --arms cache,smt -- tru" | grep -qx true || complain "after --: no command"
for scope in "${scopes[@]}"; do
  "$bin/wq-tunectl" plan --topology 'synthetic:core:2 pu:1' --kernel-scopes "$scope" >/dev/null || complain "$scope is no scope"
done
expect "wq-tunectl plan --topology " live fsroot: xml: synthetic:
touch "$tree/one.toml"
case $shell in
  bash)
    expect "wq-tunectl compare --with=s" smt system
    expect "wq-tunectl plan --kernel-scopes cpu,s" cpu,smt cpu,system
    expect "wq-tunectl plan --topology fsroot:$tree/s" "$tree/sys"
    expect "wq-tunectl plan --topology=xml:$tree/o" "$tree/one.toml"
    expect "wq-tunectl check $tree/one.toml $tree/o" "$tree/one.toml"
    expect "wq-tunectl status --config $tree/o" "$tree/one.toml"
    ;;
  zsh) expect "wq-tunectl plan --kernel-scopes cpu,s" cpu,smt cpu,system ;;
  fish)
    expect "wq-tunectl compare --with=s" --with=smt --with=system
    expect "wq-tunectl plan --kernel-scopes cpu,s" cpu,smt cpu,system
    expect "wq-tunectl check $tree/one.toml $tree/o" "$tree/one.toml"
    expect "wq-tunectl status --config $tree/o" "$tree/one.toml"
    ;;
esac
exit $failed
