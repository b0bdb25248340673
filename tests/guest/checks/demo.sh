# SPDX-License-Identifier: LGPL-2.1-or-later
# The guest's part of `./dev demo`; not a test. It prints what came: the order of the windows is random, and a
# verdict may be `undecided`. It fails if what is in force is not what the verdict says, or is not restored by a stop.
# timeout: 420
. lib.sh

step() { printf '\n[guest] %s\n' "$*"; }
drop_in_policy() { mkdir -p /etc/wq-tuned/wq-tuned.toml.d && tee "/etc/wq-tuned/wq-tuned.toml.d/$1"; }
count() { grep -cF "\"target\":\"$wq\"" $verdicts 2>/dev/null || true; }
judged() { [ "$(count)" -ge "$1" ] 2>/dev/null; }
follow() { journalctl -fu wq-tuned -o cat --since now | sed -u 's/^/  | /' & follower=$!; }
in_force() { [ "$(scope_of "$wq")" = system ]; } # between two pairs: a pair has either scope
no_follower() { pkill -x journalctl || true; wait "$follower" 2>/dev/null || true; }
word() { # the last row of `history`, and the e-value
  printf '%s; e-value %.3g\n' "$(wq-tunectl history "$wq" | grep -F -- '->' | tail -n 1 | tr -s ' ' | cut -d ' ' -f 3-)" \
    "$(jq -rs --arg wq "$wq" '[.[] | select(.target == $wq)][-1] | if .verdict == "regressed" then .e_regressed else .e_improved end' $verdicts)"
}

step "dm-crypt with four writers on eight one-CPU sockets: the kernel makes a pool for each CPU"
crypt_c0
writers=4 load_c0 # with two, the emulator's two CPUs decide whether the guard `cpu` allows the gain
kernels=$(scope_of "$wq")
note "$wq: $kernels"

step "the shipped policy, with shorter times alone added"
drop_in_policy demo.toml <<'EOF'
[judge]
settle = "0s"        # not ten minutes after the boot
jitter = "0s"        # not a random part of a minute later
window = "1s"        # not two
washout = "200ms"
EOF

step "systemctl enable --now wq-tuned; its journal as it comes"
follow
systemctl enable --now wq-tuned 2>/dev/null
half_way() { has_pairs "$wq" 6 || judged 1; }
wait_until 120 half_way || true
step "wq-tunectl status, meanwhile"
wq-tunectl status
wait_until 150 judged 1 || note "no verdict in time: $(trial_of "$wq" reason)"
first=$(judged 1 && word || echo "$wq: undecided so far: $(trial_of "$wq" reason)")
[[ $first != *improved* ]] || wait_until 20 in_force || fail "$first, but $(scope_of "$wq") is in force"
step "the verdict, and what is in force"
note "$first"
note "$wq: $(scope_of "$wq")"
step "what it is worth, in the first lines of status: that is measured by pairs after the verdict, which take longer than a demo"
wq-tunectl status | sed '/^TARGET/,$d'
systemctl stop wq-tuned
no_follower
check_eq "after systemctl stop wq-tuned as before its start: $kernels, 0 settings left" "$kernels, 0" "$(scope_of "$wq"), $(entries)"
load_off

step "a control: cache and smt make the same pools here, so \`wq-tunectl ab\` must not find a difference"
wq-tunectl ab --target "$wq" --arms cache,smt --pairs 8 -- fio --name=ab --filename=/dev/mapper/c0 --rw=randwrite --bs=32k \
  --iodepth=16 --ioengine=libaio --direct=1 --number_ios=400 --output=/dev/null | tee /run/control || true

step "a harmful scope by name: an administrator has set system, and a rule sets cache"
load_on c0 4
echo system >"$workqueues/$wq/affinity_scope"
drop_in_policy harm.toml <<'EOF'
[[workqueue]]
match = "kcryptd-*"
scope = "cache"
EOF
before=$(count)
follow
systemctl start wq-tuned
wait_until 150 judged $((before + 1)) || note "no verdict in time: $(trial_of "$wq" reason)"
second=$(judged $((before + 1)) && word || echo "$wq: undecided so far: $(trial_of "$wq" reason)")
note "$second"
[[ $second != *improved* ]] || fail "a harmful scope was kept"
[[ $second != *regressed* ]] || wait_until 20 in_force || fail "but $(scope_of "$wq") is in force"
note "$wq: $(scope_of "$wq")"
systemctl disable --now wq-tuned 2>/dev/null
no_follower
check_eq "after the stop as the administrator had set it: system, 0 settings left" "system, 0" "$(scope_of "$wq"), $(entries)"
echo default >"$workqueues/$wq/affinity_scope" # it was this script, not wq-tuned, that had set it

control=$(grep -oE 'improved|regressed|undecided.*' /run/control || echo "no verdict")
case $control in improved | regressed) control+=" (equal pools: by chance, at most 5% for each direction)" ;; esac
step "in short: the control with equal pools is $control; then the harmful scope, and last the daemon's own choice"
note "$second"
note "$first"
