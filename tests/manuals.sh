#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Checks the manuals against the code and against --help: the same options of each command, the same keys and
# counters of a policy, states, metrics and D-Bus methods, the version; and mandoc finds no fault.
# manuals.sh [BIN-DIR]. Without the programs --help is not looked at. `./dev lint` and the test `manual` run it.
#
# In wq-tunectl(1) the head `.It Cm NAME ...` of a command has all its options; each is described in a list below
# the head or in COMMON OPTIONS. wq-tunectl-NAME(1) describes all options of the command NAME in OPTIONS.
set -uo pipefail
bin=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.." || exit
failed=0
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }
same() { # WHAT, of the code or --help, of the manual
  [ -n "$2" ] || complain "$1: nothing found in the code"
  [ "$2" = "$3" ] || complain "$1; < is the code or --help, > the manual: $(diff <(echo "$2") <(echo "$3"))"
}

# ---- readers

of_help() { # PROGRAM [COMMAND]
  local program=$1
  shift
  "$bin/$program" "$@" --help | sed -nE 's/^  ((-[a-z],)? *--[a-z-]+)([ :].*)?$/\1/p' | tr -d ' ' | tr ',' '\n' | sort -u
}
in_text() { grep -oE '\bFl (Fl [a-z-]+|[a-z]\b)' | sed 's/Fl Fl /--/; s/Fl /-/' | sort -u; } # all options of mdoc text
section() { # MANUAL NAME: the lines of a section
  awk -v name="$2" '/^\.Sh / { on = $0 == ".Sh " name; next } on' "man/$1"
}
keys() { grep -E '^\.It Ic ' | sed -E 's/^\.It Ic //; s/ No = .*//' | tr -d ' ' | tr ',' '\n' | sort -u; }
items() { grep -E '^\.It ' | in_text; }
# A command in wq-tunectl(1): its heads, and the lists below them. It can have several heads.
of_command() { # NAME
  awk -v name="$1" '
    function is_head() { return /^\.It Cm / && depth == 1 }
    /^\.Sh / { on = 0; depth = 0 }
    /^\.Bl / { depth++ }
    /^\.El/ { depth-- }
    is_head() { on = 0; for (i = 3; i <= NF && $i !~ /^(Ar|Fl|Oo|Op)$/; ++i) if ($i == name) on = 1 }
    on && is_head() { print "head " $0; next }
    on && /^\.It / { print "item " $0 }' man/wq-tunectl.1
}

# ---- options

if [ -n "$bin" ]; then
  commands=$("$bin/wq-tunectl" --help | sed -n '/^Look:/,$s/^  \([a-z-]*\) .*/\1/p')
  [ "$(wc -w <<<"$commands")" -gt 10 ] || complain "wq-tunectl --help names no commands: $commands"
  common=$(section wq-tunectl.1 "COMMON OPTIONS" | items)
  for command in $commands; do
    help=$(of_help wq-tunectl "$command")
    if [ -e "man/wq-tunectl-$command.1" ]; then
      same "options of wq-tunectl-$command(1)" "$help" "$(section "wq-tunectl-$command.1" OPTIONS | items)"
      grep -q "^\.Xr wq-tunectl-$command 1" man/wq-tunectl.1 || complain "wq-tunectl(1) does not name wq-tunectl-$command(1)"
      continue
    fi
    heads=$(of_command "$command" | sed -n 's/^head //p')
    same "options of $command in wq-tunectl(1)" "$help" "$({ in_text <<<"$heads"; printf '%s\n' -h --help; } | sort -u)"
    described=$({ of_command "$command" | sed -n 's/^item //p' | in_text; echo "$common"; } | sort -u)
    for option in $help; do
      grep -qxF -- "$option" <<<"$described" || [[ $command = history && $option = --ledger ]] ||
        complain "$command $option is not described in wq-tunectl(1)"
    done
  done
  same "options of wq-tunectl" "$(of_help wq-tunectl)" "$(grep -xE -- "$(of_help wq-tunectl | paste -sd '|')" <<<"$common")"
  for program in wq-tuned wq-tuned-restore; do
    same "options of $program" "$(of_help $program)" "$(section $program.8 OPTIONS | items)"
  done
else
  echo "manuals.sh: no programs are built: --help was not looked at"
fi
for manual in man/*.[18]; do
  unknown=$(comm -23 <(section "${manual#man/}" SYNOPSIS | in_text) <({ cat "$manual"; cat man/wq-tunectl.1; } | grep '^\.It' | in_text))
  [ -z "$unknown" ] || complain "$manual: in the synopsis alone: $unknown"
done

# ---- keys and counters of a policy

of_policy=$({ tr -s '\n ' ' ' <daemon/policy/settings.cpp | grep -oE '(row(<[A-Za-z]+>)?\((table|"[a-z_]+")|\{ ?(table|"judge")), "[a-z_]+",|time\("[a-z_]+",' | grep -oE '"[a-z_]+",$'
  sed -nE 's/^ *(\{|ask\()("[a-z_]+"),.*/\2/p' daemon/policy/load_policy.cpp
  grep -oE 'kHostKeys = \{[^}]*' daemon/policy/load_policy.cpp | grep -oE '"[a-z_]+"'; } | tr -d '",' | sort -u)
same "keys in wq-tuned.toml(5)" "$of_policy" "$(sed '/^\.Sh COUNTERS/,/^\.Sh /d' man/wq-tuned.toml.5 | keys)"
same "counters in wq-tuned.toml(5)" \
  "$(sed -nE 's/.*CounterKind\{"([^"]+)".*/\1/p' daemon/counters/counter_table.cpp | sort -u)" "$(section wq-tuned.toml.5 COUNTERS | keys)"

# ---- states, metrics, D-Bus, version

states=$(sed -n '/kStateNames\[\] = {/,/;/p' daemon/targets/target.h | grep -oE '"[a-z-]+"' | tr -d '"' | sort)
same "states in wq-tunectl(1)" "$states" "$(section wq-tunectl.1 STATES | sed -nE 's/^\.It ([a-z-]+)$/\1/p' | sort)"
# shellcheck disable=SC2016 # the backquotes are those of Markdown
same "states in docs/json.md" "$states" "$(sed -nE 's/^\| `state` \| (`unmanaged`.*) \(STATES.*/\1/p' docs/json.md | grep -oE '[a-z-]+' | sort)"
same "metrics in wq-tuned(8)" "$(grep -ohE '"wq_tuned_[a-z_]+"' daemon/service/metrics.cpp | tr -d '"' | sort)" \
  "$(grep -oE '^\.It Va wq_tuned_[a-z_]+' man/wq-tuned.8 | cut -c8- | sort)"
for kind in Fn:METHOD_WITH_ARGS Va:PROPERTY; do
  same "${kind#*:} in org.wqtuned1(5)" "$(sed -nE "s/.*${kind#*:}\(\"([A-Za-z]+)\".*/\1/p" daemon/service/bus.cpp | sort)" \
    "$(sed -nE "s/^\.It ${kind%:*} ([A-Za-z]+).*/\1/p" man/org.wqtuned1.5 | sort)"
done
version=$(sed -nE 's/^project\(wq-tuned VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt)
for manual in man/*.[1-8]; do
  grep -qxF ".Os wq-tuned $version" "$manual" || complain "$manual: the version after .Os is not $version"
  grep -qF " ${manual#man/}" man/CMakeLists.txt || complain "$manual: not installed by man/CMakeLists.txt"
done
if command -v mandoc >/dev/null; then
  [ "$(mandoc -T utf8 man/wq-tunectl.1 | wc -w)" -lt 4000 ] || complain "wq-tunectl(1) has 4,000 words or more"
  lint=$(mandoc -T lint -W warning man/*.[1-8] 2>&1) || complain "mandoc: $lint"
else
  echo "manuals.sh: mandoc is not installed: the form of the manuals was not looked at"
fi
exit $failed
