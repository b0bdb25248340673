# SPDX-License-Identifier: LGPL-2.1-or-later
# With the unchanged installed policy a busy target has a verdict within five minutes after `enable --now`.
# timeout: 1300
. lib.sh

crypt_c0
# Wait until the host has been up longer than judge.settle.
up() { [ "$(cut -d. -f1 /proc/uptime)" -ge 600 ]; }
wait_until 620 up || fail "it is $(cut -d' ' -f1 /proc/uptime) s since the boot"
load_c0
began=$SECONDS
systemctl enable --now wq-tuned 2>/dev/null
trap 'systemctl disable --now wq-tuned 2>/dev/null; load_off' EXIT
# A verdict from pairs; what ended without one is recorded as well, perhaps before.
decided() { jq -es --arg wq "$wq" '.[-1] | .target == $wq and .judged and .verdict != "undecided"' $verdicts >/dev/null 2>&1; }
wait_until 600 decided || fail "no verdict: $(wq-tunectl status)"
note "$(verdict target): $(verdict candidate) against $(verdict reference): $(verdict verdict) after $((SECONDS - began)) s, $(verdict pairs) pairs, $(verdict effect_percent)%"
wq-tunectl status
[ $((SECONDS - began)) -lt 300 ] || fail "more than five minutes"
