# SPDX-License-Identifier: LGPL-2.1-or-later
# Broken policies, kill switches and observe: the daemon writes nothing if it may not. Host tables, in
# the sandbox.
. lib.sh

# "STATE FILE:LINE:COLUMN IN-FORCE"
policy_state() {
  wq-tunectl status --json |
    jq -r '.daemon.policy | "\(.state) \((.error // "null") | split(": ")[0]) \(.in_force)"'
}
first_line() { wq-tunectl status | sed -n 1p; }

scope=$(other_scope)
crypt_c0

note "-- a broken policy at start"
apply_policy "$scope"
echo 'scop = "smt"' >>/etc/wq-tuned/wq-tuned.toml
wq-tunectl check 2>/run/wq-tests/err && fail "check finds nothing"
grep -qE '^/etc/wq-tuned/wq-tuned.toml:6:8: ' /run/wq-tests/err || fail "check says: $(cat /run/wq-tests/err)"
systemctl start wq-tuned
check_eq "state" observing "$(daemon_field state)"
daemon_field reason | grep -q 'wq-tuned.toml:6:8' || fail "reason: $(daemon_field reason)"
check_eq "policy" "broken /etc/wq-tuned/wq-tuned.toml:6:8 null" "$(policy_state)"
check_eq "reason of a target" "cannot plan: invalid policy" "$(target "$wq" reason)"
first_line | grep -q '^the policy on disk is broken since 20.*: /etc/wq-tuned/wq-tuned.toml:6:8: .*; none is in force: observing$' ||
  fail "status says: $(first_line)"
check_eq "writes" 0 "$(daemon_field writes)"
scope_is "$wq" default || fail "it holds $(scope_of "$wq")"

note "-- mended and reloaded"
apply_policy "$scope"
wq-tunectl reload
expect_scope "$wq" "$scope"
check_eq "policy" loaded "$(wq-tunectl status --json | jq -r '.daemon.policy | if .in_force == .since then .state else . end')"
first_line | grep -q '^wq-tuned ' || fail "status says: $(first_line)"

reload_is_refused() { # COMPLAINT
  wq-tunectl reload 2>/run/wq-tests/err && fail "the reload was taken"
  grep -q "$1" /run/wq-tests/err || fail "reload says: $(cat /run/wq-tests/err)"
  check_eq "$1: state" running "$(daemon_field state)"
  check_eq "$1: scope" "$scope" "$(scope_of "$wq")"
  wq-tunectl status --json | jq -r .daemon.policy.error | grep -q "$1" || fail "status --json says: $(policy_state)"
  first_line | grep -q "^the policy on disk is broken since 20.*$1.*; the policy loaded at 20.* stays in force$" ||
    fail "status says: $(first_line)"
}

note "-- not to be read (root's capabilities are not the daemon's) or not to be trusted: the old one stays"
file=/etc/wq-tuned/wq-tuned.toml
chmod 000 $file
reload_is_refused "wq-tuned.toml: cannot be read: Permission denied"
chmod 646 $file
reload_is_refused "wq-tuned.toml: everyone may write to it"
ln -sf wq-tuned.toml $file
reload_is_refused "wq-tuned.toml: cannot be read: Too many levels of symbolic links"
rm $file
apply_policy "$scope"

note "-- broken again: the old one stays"
echo '[[workqueue' >>$file
reload_is_refused "wq-tuned.toml:6"

note "-- restarted with the broken one: observe, and the baseline"
systemctl restart wq-tuned
check_eq "state" observing "$(daemon_field state)"
expect_scope "$wq" default
check_eq "entries" 0 "$(entries)"
apply_policy "$scope"
wq-tunectl reload
expect_scope "$wq" "$scope"

note "-- the kill switch"
touch /etc/wq-tuned/disabled
wq-tunectl pin "$wq" cpu 2>/run/wq-tests/err && fail "an order was taken"
check_eq "an order before the next look" 1 "$(grep -c 'nothing is written while observing' /run/wq-tests/err)"
wq-tunectl reload
expect_scope "$wq" default
check_eq "state" paused "$(daemon_field state)"
rm /etc/wq-tuned/disabled
wq-tunectl reload
expect_scope "$wq" "$scope"

note "-- not at once: waits at the baseline"
sed -i 's/^scope = .*/scope = "auto"\ncandidates = ["'"$scope"'"]/' /etc/wq-tuned/wq-tuned.toml
wq-tunectl reload
expect_scope "$wq" default
check_eq "state" waiting "$(target "$wq" state)"

note "-- observe"
sed -i '1i daemon.mode = "observe"' /etc/wq-tuned/wq-tuned.toml
wq-tunectl reload
check_eq "state" observing "$(daemon_field state)"
scope_is "$wq" default || fail "it holds $(scope_of "$wq")"
systemctl stop wq-tuned

note "-- it serves swap: no experiment without a rule"
policy <<EOF
judge.jitter = "0s"
judge.settle = "0s"
[[workqueue]]
match = "*"
EOF
mkswap /dev/mapper/c0 >/dev/null
swapon /dev/mapper/c0
systemctl start wq-tuned
is_left_for_swap() { target "$wq" reason | grep -q "it serves swap"; }
wait_until 40 is_left_for_swap || fail "state $(target "$wq" state): $(target "$wq" reason)"
check_eq "state" leave "$(target "$wq" state)"
systemctl stop wq-tuned
swapoff /dev/mapper/c0

note "-- host tables: the daemon knows all of this of its host, sandboxed as it is"
# The first two tables must match, so that the plan is applied and has their scope; the third must not match.
modprobe dmi-sysfs
smbios=$(tr -c '[:print:]' '\n' </sys/firmware/dmi/entries/4-0/raw | grep -m 1 '^pc-q35-')
# Prints a condition on a feature that status shows as $1 (true or false), or nothing if there is no such
# feature.
has() {
  wq-tunectl status --json | jq -r --argjson so "$1" '[.kernel.features | to_entries[] | select(.value == $so).key][:1][] | "when.has = \"\(.)\""'
}
of_topology() { wq-tunectl topology --json | jq "$1"; }
policy <<EOF
default_scope.manage = false
judge.settle = "1d"
[[host]]
name = "this-one"
when.arch = "$(uname -m)"
when.cpu_vendor = "GenuineIntel"
when.cpu_model = "*Skylake*"
when.kernel = "$guest_kernel"
when.hostname = "$(uname -n)"
when.cores = $(of_topology .cores)
when.llc_cores = $(of_topology '[.llcs[].cores] | max')
when.smt = $(of_topology '.threads_per_core > 1')
when.virtual = true
$(has true)
when.canary = "100%"
[[host]]
name = "by-smbios"
when.cpu_model = "$smbios"
workqueue = [{ match = "kcryptd-*", scope = "$scope" }]
[[host]]
name = "of-another-kernel"
$(has false)
when.llc_cores = ">=1"
$([ -n "$(has false)" ] || echo 'when.cores = "<1"')
workqueue = [{ match = "kcryptd-*", scope = "leave" }]
[[host]]
name = "another"
when.cores = $(($(of_topology .cores) + 1))
workqueue = [{ match = "kcryptd-*", scope = "leave" }]
EOF
scope_is "$wq" default || fail "it holds $(scope_of "$wq")"
systemctl start wq-tuned
wait_until 5 scope_is "$wq" "$scope" || fail "no match; outside of the sandbox: $(wq-tunectl plan | sed -n '/hosts/,/^$/p')"
note "ok: matched, $wq holds '$scope'"
systemctl stop wq-tuned

note "-- a hostname that is set later, as cloud-init does: the next tick, 15 s later at most, sees it"
before=$(uname -n)
trap 'hostname "$before"' EXIT
policy <<EOF
default_scope.manage = false
judge.settle = "1d"
[[workqueue]]
match = "kcryptd-*"
scope = "leave"
[[host]]
name = "web"
when.hostname = "web-*"
workqueue = [{ match = "kcryptd-*", scope = "$scope" }]
EOF
systemctl start wq-tuned
check_eq "host tables in force" "[]" "$(status | jq -c .daemon.hosts)"
scope_is "$wq" default || fail "it holds $(scope_of "$wq")"
mark
hostname web-7
wait_until 20 scope_is "$wq" "$scope" || fail "it holds $(scope_of "$wq")"
check_eq "host tables in force" '["web"]' "$(status | jq -c .daemon.hosts)"
wq-tunectl status | grep -qx "Host tables in force: web" || fail "status: $(wq-tunectl status)"
check_eq "the journal" 1 "$(since_mark | grep -c "host tables in force: web")"
hostname "$before"
wait_until 20 scope_is "$wq" default || fail "it holds $(scope_of "$wq")"
systemctl stop wq-tuned
check_eq "system calls that would change it" "" \
  "$(systemctl show -P SystemCallFilter wq-tuned | grep -oE 'set(host|domain)name' || true)"

note "-- a rule that expires while the daemon runs"
# The clock is set back, not forward: lines that are logged in the future would be newer than the marks of
# later checks.
date -s '-1 day' >/dev/null
apply_policy "$scope"
sed -i "\$a expires = \"$(date -u +%F)\"\nevidence = \"a check\"" /etc/wq-tuned/wq-tuned.toml
start_to "$wq" "$scope"
wq-tunectl explain "$wq" | grep -qx '  because    a check' || fail "explain: $(wq-tunectl explain "$wq")"
date -s '+1 day' >/dev/null
wait_until 60 scope_is "$wq" default || fail "it holds $(scope_of "$wq")"
wq-tunectl status | grep -qx '1 rule has expired: /etc/wq-tuned/wq-tuned.toml:3' || fail "status: $(wq-tunectl status)"
check_eq "said once" 1 "$(journalctl --sync; journalctl -u wq-tuned "_PID=$(systemctl show -P MainPID wq-tuned)" -o cat | grep -c 'expired rules: 1')"
date -s '-1 day' >/dev/null
wait_until 60 scope_is "$wq" "$scope" || fail "it holds $(scope_of "$wq")"
systemctl stop wq-tuned
date -s '+1 day' >/dev/null

note "-- a workqueue that udev processed before our rules were there: it has no entry, and gets none"
apply_policy "$scope"
rm -f "/run/udev/data/+workqueue:$wq"
start_to "$wq" "$scope"
systemctl stop wq-tuned

note "-- a workqueue opted out by a udev rule"
trap 'rm -f /run/udev/rules.d/70-check.rules; udevadm control --start-exec-queue --reload; udevadm trigger --subsystem-match=workqueue' EXIT
mkdir -p /run/udev/rules.d
echo 'SUBSYSTEM=="workqueue", KERNEL=="kcryptd-*", ENV{WQ_TUNED_IGNORE}="1"' >/run/udev/rules.d/70-check.rules
udevadm control --reload
udevadm trigger --subsystem-match=workqueue --settle
systemctl start wq-tuned
check_eq "state" unmanaged "$(target "$wq" state)"
target "$wq" reason | grep -q WQ_TUNED_IGNORE || fail "reason: $(target "$wq" reason)"
check_eq "writes" 0 "$(daemon_field writes)"
systemctl stop wq-tuned

note "-- and one that udev has not come to yet, as at boot"
udevadm control --stop-exec-queue
DM_DISABLE_UDEV=1 crypt_open c1 1
new=$(wq_of c1)
systemctl start wq-tuned
check_eq "state, reason" "waiting udev has not processed it yet" "$(target "$new" state) $(target "$new" reason)"
wq-tunectl reload
scope_is "$new" default || fail "it holds $(scope_of "$new")"
udevadm control --start-exec-queue
wait_until 10 state_is "$new" unmanaged || fail "$(target "$new" state): $(target "$new" reason)"
check_eq "writes" 0 "$(daemon_field writes)"
