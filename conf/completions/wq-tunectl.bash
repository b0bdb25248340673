# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of wq-tunectl(1) for bash. tests/unit/completions_test.sh compares it with --help.

# The options of COMMAND; of wq-tunectl itself where it is "".
_wq_tunectl_options() {
  case $1 in
    '') echo '--help --version --root' ;;
    topology) echo '--help --topology --shard-size --json --config' ;;
    plan) echo '--help --boot --topology --shard-size --kernel-scopes --json --config' ;;
    report) echo '--help --output --topology --shard-size --kernel-scopes --config' ;;
    explain) echo '--help --topology --shard-size --kernel-scopes --json --config' ;;
    judge) echo '--help --json --alpha --tolerance --max-pairs' ;;
    ab) echo '--help --target --arms --sweep --metric --higher-is-better --pairs --all-pairs --alpha --tolerance --warmup --ignore-failure --show-output --export --json' ;;
    trial) echo '--help --arm --json' ;;
    top) echo '--help --interval --iterations --once --sort --functions --json' ;;
    undo) echo '--help --print' ;;
    status | cat-config) echo '--help --json --config' ;;
    history) echo '--help --json --export-policy' ;;
    check | dump) echo '--help --json' ;;
    *) echo '--help' ;;
  esac
}

# The workqueues below ROOT that have FILE, one a line. What compgen would expand, or the shell run, is no name that
# any kernel has: somebody else's tree must not run anything.
_wq_tunectl_workqueues() {
  local file
  for file in "$1"/sys/devices/virtual/workqueue/*/"$2"; do
    file=${file%/*}
    case ${file##*/} in *[![:alnum:]_.:!@#+,=-]*) continue ;; esac
    [ ! -d "$file" ] || echo "${file##*/}"
  done
}

# What has a scope below ROOT, one a line.
_wq_tunectl_targets() {
  echo @default
  _wq_tunectl_workqueues "$1" affinity_scope
}

_wq_tunectl() {
  local commands='status topology plan explain history report check cat-config dump judge ab pin unpin revert trial top undo reload'
  local scopes='cpu smt cache_shard cache numa system'
  local sort_keys='name total inflight rate cpu p50 p90 p99 lock cputime hogs wakeups mayday rescued workqueue busy mean items'
  local line=${COMP_LINE:0:COMP_POINT} part="" word option="" command="" root="" whole given=0 run=-1 kept
  local -a words
  # Split at blanks alone: bash has also cut the names of workqueues at each ':'.
  read -ra words <<<"$line"
  case $line in
    *[[:blank:]]) ;;
    *) part=${words[-1]} && unset 'words[-1]' ;;
  esac
  whole=$part
  for word in "${words[@]:1}"; do
    if [ $run -ge 0 ]; then
      run=$((run + 1)) # a word of the command that `ab` is to run
      continue
    fi
    if [ -n "$option" ]; then
      [ "$option" != --root ] || root=$word
      option=""
      continue
    fi
    case $word in
      --) [ "$command" != ab ] || run=0 ;;
      --root=*) root=${word#*=} ;;
      --root | -o | --output | --topology | --shard-size | --kernel-scopes | --config | --arm | --alpha | --tolerance | --max-pairs | \
        --target | --arms | --metric | --pairs | --warmup | --export | -d | --interval | -n | --iterations | --sort)
        option=$word ;;
      -*) ;;
      *) if [ -z "$command" ]; then command=$word; else given=$((given + 1)); fi ;;
    esac
  done
  case $part in
    --*=*) option=${part%%=*} part=${part#*=} ;;
  esac

  local -a from=(-W '')
  case ${option:-$command/$given} in
    --root) from=(-d) ;;
    --config | --export | -o | --output) from=(-f) ;;
    --target) from=(-W "$(_wq_tunectl_targets "$root")") ;;
    --metric) from=(-W time) ;;
    --arm) from=(-W "$scopes") ;;
    --sort) from=(-W "$sort_keys") ;;
    --kernel-scopes | --arms) from=(-P "${part%"${part##*,}"}" -W "$scopes") ;;
    --topology)
      case $part in
        fsroot:*) from=(-P fsroot: -d) ;;
        xml:*) from=(-P xml: -f) ;;
        *) from=(-W 'live fsroot: xml: synthetic:') ;;
      esac
      ;;
    --* | -d | -n) ;; # a number
    /*) from=(-W "$commands $(_wq_tunectl_options '')") ;;
    check/* | judge/0) from=(-f) ;;
    dump/* | top/*) from=(-W "$(_wq_tunectl_workqueues "$root" max_active)") ;;
    explain/0 | pin/0 | unpin/0 | revert/0 | trial/0) from=(-W "$(_wq_tunectl_targets "$root")") ;;
    pin/1) from=(-W "$scopes") ;;
    *) from=(-W "$(_wq_tunectl_options "$command")") ;;
  esac
  case $option$part in
    -*) [ -n "$option" ] || from=(-W "$(_wq_tunectl_options "$command")") ;;
  esac
  case $run in
    -1) ;;
    0) from=(-c) ;;
    *) from=(-f) ;;
  esac
  case " ${from[*]} " in
    *' -d '* | *' -f '*) compopt -o filenames 2>/dev/null ;;
    *' -P '* | *fsroot:*) compopt -o nospace 2>/dev/null ;; # there is more to come
  esac
  kept=$part
  if [ "${from[0]}" = -P ]; then part=${part#"${from[1]}"}; fi
  mapfile -t COMPREPLY < <(compgen "${from[@]}" -- "$part")
  # Bash puts the reply in place of what follows the last '=' or ':'.
  whole=${whole##*[=:]}
  kept=${kept%"$whole"}
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}
complete -F _wq_tunectl wq-tunectl
