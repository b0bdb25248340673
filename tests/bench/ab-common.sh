# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Shared by the comparisons with `wq-tunectl ab`. PAIRS (default 8) and SECONDS_EACH (default 1) scale them.

# shellcheck disable=SC2034 # used by the scripts that source this file
fio=(fio --name=ab --time_based --runtime="${SECONDS_EACH:-1}" --group_reporting --output-format=json --allow_mounted_write=1)

heading() { printf '\n-- %s\n' "$*"; }

# `compare TARGET read|write ARGUMENT... -- COMMAND...`: compares the read or write rate of fio, in KiB/s.
# Progress messages are shown only after a failure.
compare() {
  local target=$1 way=$2 said
  shift 2
  said=$(mktemp)
  wq-tunectl ab --target "$target" --pairs "${PAIRS:-8}" --metric "(?s)\"$way\" :.*?\"bw\" : (\d+)" --higher-is-better \
    "$@" 2>"$said" || { tail -n 5 "$said"; rm "$said"; return 1; }
  rm "$said"
}
