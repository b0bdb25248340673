# SPDX-License-Identifier: LGPL-2.1-or-later
# A host of the fleet of fleet.sh: runs the installed policy under load until it has a verdict or, with
# wq_tests.pairs=N on the kernel command line, for N pairs. Then sends its ledger to the host of the guest.
# timeout: 900
. lib.sh

pairs=$(sed -nE 's/.*wq_tests\.pairs=([0-9]+).*/\1/p' <<<"$guest_append")
check_eq "a machine id of its own" "$(sed -nE 's/.*systemd\.machine_id=([0-9a-f]+).*/\1/p' <<<"$guest_append")" "$(cat /etc/machine-id)"

# As on a host that has been up for a while: settle and jitter are over. The rest is as installed, so that the
# evidence of all hosts can be pooled; max_pairs does not matter for that.
mkdir -p /etc/wq-tuned/wq-tuned.toml.d
cat >/etc/wq-tuned/wq-tuned.toml.d/50-check.toml <<EOF
[judge]
settle = "0s"
jitter = "0s"
${pairs:+max_pairs = $pairs}
EOF

crypt_c0
writers=4 load_c0 # as in demo.sh: with two writers the emulator decides whether the guard `cpu` allows the gain
began=$SECONDS
systemctl start wq-tuned
# Other workqueues may be busy too, and have a verdict earlier.
of_wq() { jq -rs --arg wq "$wq" --arg key "$1" '[.[] | select(.target == $wq)][0][$key] // empty' $verdicts 2>/dev/null || true; }
is_judged() { [ -n "$(of_wq verdict)" ]; }
wait_until 700 is_judged || fail "no verdict: $(wq-tunectl status)"
note "$(of_wq candidate) against $(of_wq reference): $(of_wq verdict) after $((SECONDS - began)) s, $(of_wq pairs) pairs, $(of_wq effect_percent)%"

# A stop would cut off the current pair and count it against the current arm. A pause lets the pair end.
wq-tunectl pause
is_at_rest() { [ "$(status | jq .daemon.experiments.measuring)" = 0 ]; }
wait_until 60 is_at_rest || fail "a pair does not end: $(wq-tunectl status)"
systemctl stop wq-tuned
load_off

wq-tunectl history --ledger >/run/wq-tests/ledger.jsonl
note "lines of its ledger:"
jq -r '"  \(.class): \(.reference) -> \(.candidate), \(.counter), \(.pairs) pairs"' /run/wq-tests/ledger.jsonl
bring_out /run/wq-tests/ledger.jsonl
check_eq "the verdict" "$([ -n "$pairs" ] && echo undecided || echo improved)" "$(of_wq verdict)"
check_eq "on what" system "$(of_wq candidate)"
