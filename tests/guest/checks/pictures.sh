# SPDX-License-Identifier: LGPL-2.1-or-later
# The input of tests/browser/pictures.sh: the output of `status` on a terminal of 108 columns, and the report,
# after a verdict, when the pairs after it have measured what the scope is worth.
# timeout: 1500
. lib.sh

mkdir -p /etc/wq-tuned/wq-tuned.toml.d
printf 'judge.settle = "0s"\njudge.jitter = "0s"\njudge.recheck = "10s"\njudge.budget = "1h"\n' >/etc/wq-tuned/wq-tuned.toml.d/50-check.toml
crypt_open c0
writers=4 load_c0
systemctl start wq-tuned
wait_until 700 ended 1 || fail "no verdict: $(wq-tunectl status)"
worth_pairs() { [ "$(status | jq '.worth.classes[0].pairs')" -ge 16 ] 2>/dev/null; }
wait_until 800 worth_pairs || fail "not measured: $(status | jq -c .worth)"
TERM=xterm COLUMNS=108 script -qec "wq-tunectl --no-pager status" /dev/null </dev/null >/run/wq-tests/status
wq-tunectl report -o /run/wq-tests/report.html
bring_out /run/wq-tests/status
bring_out /run/wq-tests/report.html
