# SPDX-License-Identifier: LGPL-2.1-or-later
# kill -9 at each write, fsync and rename while applying and while restoring, one after the other
# (kill_at.cpp). After each kill every setting has its baseline, and there is no entry.
# timeout: 600
. lib.sh

crypt_open c0
crypt_open c1 1
apply_policy "$(other_scope)"
wqs="$(wq_of c0) $(wq_of c1)"
settings() { grep -H . "$workqueues"/*/affinity_{scope,strict} /sys/module/workqueue/parameters/default_affinity_scope; }
before=$(settings)

armed() { # CALL N
  drop_in wq-tuned.service <<EOF
[Service]
Restart=no
ExecStart=
ExecStart=/usr/bin/env LD_PRELOAD=/usr/lib/wq-tests/kill-at.so KILL_AT=$1:$2 /usr/sbin/wq-tuned
EOF
  systemctl reset-failed wq-tuned 2>/dev/null || true
}

ends=0
# Applying and restoring two workqueues writes the file at least twice (write, two fsyncs, rename), and four
# settings.
declare -A least=([write]=6 [fsync]=4 [rename]=2)
for call in write fsync rename; do
  n=0
  while :; do
    n=$((n + 1))
    [ $n -lt 30 ] || fail "no end: still killed at $call $n"
    armed $call $n
    phase=applying
    if systemctl start wq-tuned 2>/dev/null; then
      phase=restoring
      for wq in $wqs; do scope_is "$wq" "$(other_scope)" || fail "active, but $wq holds $(scope_of "$wq")"; done
      systemctl stop wq-tuned
    fi
    [ "$before" = "$(settings)" ] || fail "$call $n, $phase: left behind: $(diff <(echo "$before") <(settings))"
    check_eq "$call $n, $phase: entries" 0 "$(entries)"
    case $(systemctl show -P Result wq-tuned) in
      signal) ends=$((ends + 1)) ;;
      success) break ;; # the daemon makes fewer than n such calls from start to stop
      *) fail "$call $n: ended by $(systemctl show -P Result wq-tuned)" ;;
    esac
  done
  [ $((n - 1)) -ge "${least[$call]}" ] || fail "only $((n - 1)) kills at $call: that cannot be all of a life"
done
note "$ends kills"
