# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What both tests here use: a folder $work and processes $children, which end with the script, and within().
# shellcheck disable=SC2317 # called by a trap
work=$(mktemp -d)
children=()
finish() {
  kill -KILL "${children[@]}" 2>/dev/null || true
  wait 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT
within() { # SECONDS COMMAND...: until it succeeds
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}
