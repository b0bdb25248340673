#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `./dev soak`: run.sh BUILD-DIR [KERNEL] [STORM...]. Default: all storms. `faults` (the long form of
# tests/faults), `tree-workqueues`, `tree-reload` and `tree-memory` run here, on a tree; `crypt`, `hotplug`,
# `udev` and `reload` each run in a guest with KERNEL (default 6.12).
set -euo pipefail
build=$1 kernel=6.12
shift
case ${1:-} in [0-9]*) kernel=$1; shift ;; esac
[ $# -gt 0 ] || set -- faults tree-workqueues tree-reload tree-memory crypt hotplug udev reload
tests=()
for storm in "$@"; do
  case $storm in
    faults) tests+=("soak\\.faults") ;;
    tree-workqueues | tree-reload | tree-memory) tests+=("soak\\.$storm-100") ;;
    crypt | hotplug | udev | reload) tests+=("guest\\.storm-$storm-${kernel//./\\.}\\..*") ;;
    *) echo "no such storm: $storm"; exit 2 ;;
  esac
done
code=0
ctest --test-dir "$build" -L '^soak$' -R "^($(IFS='|'; echo "${tests[*]}"))\$" --no-tests=error --output-on-failure || code=$?
echo "figures:"
awk '/^[0-9]+\/[0-9]+ Test: / {name = $3} /^figures: / {sub(/^figures: /, ""); print name ": " $0}' \
  "$build/Testing/Temporary/LastTest.log"
exit $code
