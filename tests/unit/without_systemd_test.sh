#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# conf/container/wq-tuned-run restores settings however the daemon ends. without_systemd_test.sh WQ-TUNED-RUN WQ-TUNED-RESTORE
set -uo pipefail
run=$1 restorer=$2
root=$(mktemp -d)
daemon=""
trap '[ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null; rm -rf "$root"' EXIT
failed=0
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }

# A fake daemon that records its signals and exits with a fixed code; the real restorer, on a tree.
tree=$root/tree wq=$root/tree/sys/devices/virtual/workqueue/kcryptd
mkdir -p "$root/bin" "$wq" "$tree/run/wq-tuned"
cat >"$root/bin/wq-tuned" <<END
#!/bin/bash
if [ "\${1:-}" = --pods ]; then
  [ ! -e $root/stop ] || kill \$PPID
  exit 1 # as without CAP_SYSLOG
fi
trap 'echo stopped >>$root/said; exit 3' TERM
trap 'echo reloaded >>$root/said' HUP
echo "\$\$ \$*" >$root/started
while :; do sleep 0.05; done
END
printf '#!/bin/bash\nexec %q --root %q\n' "$restorer" "$tree" >"$root/bin/wq-tuned-restore"
chmod +x "$root"/bin/*
echo 0 >"$wq/per_cpu"
echo 0 >"$wq/affinity_strict"

start() {
  rm -f "$root"/{started,said}
  echo smt >"$wq/affinity_scope"
  printf '{"version": 1, "entries": [{"target": "kcryptd", "file": "affinity_scope", "inode": %s, "baseline": "default",
    "claim": ["smt"], "strict": {"file": "affinity_strict", "baseline": "0", "claim": []}, "holder": "policy",
    "note": "", "external": false}]}\n' "$(stat -c %i "$wq")" >"$tree/run/wq-tuned/owned.json"
  PATH=$root/bin:$PATH "$run" --config policy 2>"$root/err" &
  shell=$!
  [ ! -e "$root/stop" ] || return
  for ((i = 0; i < 200; ++i)); do [ ! -s "$root/started" ] || break; sleep 0.05; done
  read -r daemon options <"$root/started" || complain "it does not start: $(cat "$root/err")"
}
ends() { # WHAT EXIT-CODE
  local code=0
  wait "$shell" || code=$?
  [ "$code" = "$2" ] || complain "$1: exit $code, not $2: $(cat "$root/err")"
  [ "$(cat "$wq/affinity_scope")" = default ] || complain "$1: it holds $(cat "$wq/affinity_scope")"
}

start
[ "$options" = "--config policy" ] || complain "it is started with '$options'"
kill -HUP "$shell"
for ((i = 0; i < 200; ++i)); do [ ! -s "$root/said" ] || break; sleep 0.05; done
kill -0 "$daemon" || complain "a reload ends it"
kill -TERM "$shell"
ends "stopped" 3
[ "$(cat "$root/said")" = $'reloaded\nstopped' ] || complain "it heard: $(cat "$root/said")"
start
kill -KILL "$daemon"
ends "killed" 137
touch "$root/stop"
start
ends "stopped before the daemon runs" 0
rm "$root/stop"
start
echo '{' >"$tree/run/wq-tuned/owned.json"
kill -TERM "$shell"
wait "$shell"
[ $? = 1 ] || complain "a restore that fails is not reported"
exit $failed
