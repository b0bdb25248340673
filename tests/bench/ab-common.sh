# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the comparisons by `wq-tunectl ab` share. PAIRS (8) and SECONDS_EACH (1) scale them.

# shellcheck disable=SC2034 # those who source this run it
fio=(fio --name=ab --time_based --runtime="${SECONDS_EACH:-1}" --group_reporting --output-format=json --allow_mounted_write=1)

heading() { printf '\n-- %s\n' "$*"; }

# `compare TARGET read|write ARGUMENT... -- COMMAND...`: by fio's KiB/s that way. What is said of progress is shown
# only where it failed.
compare() {
  local target=$1 way=$2 said
  shift 2
  said=$(mktemp)
  wq-tunectl ab --target "$target" --pairs "${PAIRS:-8}" --metric "(?s)\"$way\" :.*?\"bw\" : (\d+)" --higher-is-better \
    "$@" 2>"$said" || { tail -n 5 "$said"; rm "$said"; return 1; }
  rm "$said"
}
