#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Debian's prometheus and prometheus-node-exporter, for metrics_test.sh: unpacked into the cache, since their packages
# start daemons when they are installed. Prints the folder of the programs.
set -euo pipefail
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/../guest/common.sh"

dir=$cache/prometheus-$(recipe "$0")
if [ ! -e "$dir" ]; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/prometheus.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  say "prometheus, node_exporter: downloading" >&2
  get() { (cd "$work" && apt-get -qq -oAPT::Sandbox::User=root download prometheus prometheus-node-exporter); }
  if ! get >"$work/log" 2>&1; then
    as_root apt-get -qq update >"$work/log" 2>&1 || true
    get >>"$work/log" 2>&1 || { cat "$work/log" >&2; die "Debian's prometheus could not be downloaded"; }
  fi
  mkdir "$work/bin"
  for deb in "$work"/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/bin" --strip-components=3 --wildcards './usr/bin/prom*'
  done
  mv -T "$work/bin" "$dir" 2>/dev/null || [ -e "$dir" ] # another run may have been first
fi
echo "$dir"
