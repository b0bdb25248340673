#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `./dev demo`: demo.sh BUILD-DIR STAGE-DIR. Nothing on this machine is changed.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/common.sh"

say "this machine: wq-tunectl topology"
"$1/daemon/wq-tunectl" topology
say "this machine: wq-tunectl plan (nothing is written)"
"$1/daemon/wq-tunectl" plan

say "booting a guest: a real kernel 6.12, eight one-CPU sockets as virtual machine managers give them"
results=$(mktemp -d /tmp/wq-tuned-demo.XXXXXX)
trap 'rm -rf "$results"' EXIT
"$guest_dir/boot.sh" --kernel 6.12 --smp 8,sockets=8,cores=1,threads=1 --stage "$2" --results "$results" \
  --timeout 600 --stream demo
[ "$(cat "$results/demo.rc")" = 0 ] || die "the demo failed in the guest"
