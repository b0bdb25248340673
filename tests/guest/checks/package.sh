# SPDX-License-Identifier: LGPL-2.1-or-later
# The Debian packages, in a guest without the project: install, upgrade while settings are in force, remove,
# purge.
# timeout: 400
. lib.sh

scope=$(other_scope)
crypt_c0
# now or next; see stage-package.sh. Like apt, deconfigures packages that are about to be replaced.
install() { dpkg --auto-deconfigure --install /usr/lib/wq-tests/wq-tun*-"$1".deb 2>&1 || fail "dpkg --install, $1: exit code $?"; }
remove() { dpkg --remove wq-tuned wq-tunectl; }
purge() { dpkg --purge wq-tuned wq-tunectl; }
# Prints all files with our name, except the policy.
ours() { find / -xdev \( -path /usr/lib/wq-tests -o -path /etc/wq-tuned \) -prune -o \( -name '*wq-tune*' -o -name '*wqtuned1*' \) -print; }
ours_in_run() { find /run -name '*wq-tune*' -print; }

check_eq "before" "" "$(ours)"

note "-- the tool alone"
dpkg --install /usr/lib/wq-tests/wq-tunectl-now.deb || fail "dpkg --install: exit code $?"
[ -n "$(ours)" ] || fail "no file of ours is found"
/usr/lib/wq-tests/autopkgtest-tool || fail "debian/tests/tool: exit code $?"
[ ! -e /usr/sbin/wq-tuned ] || fail "there is a daemon"
dpkg --purge wq-tunectl
check_eq "left" "" "$(ours)"

note "-- install"
install now
check_eq "enabled, running" "disabled inactive" "$(systemctl is-enabled wq-tuned) $(systemctl is-active wq-tuned)"
systemctl preset --quiet wq-tuned
check_eq "as presets have it, too" disabled "$(systemctl is-enabled wq-tuned)"
for package in wq-tuned wq-tunectl; do
  [ -s /var/lib/dpkg/info/$package.md5sums ] || fail "$package has no checksums"
done
verified=$(dpkg --verify wq-tuned wq-tunectl)
check_eq "files as packed, but for manuals, which guests do without" "" \
  "$(grep -vE ' /usr/share/(doc|man)(/|$)' <<<"$verified" || true)"
for file in /usr/share/{bash-completion/completions/wq-tunectl,zsh/vendor-completions/_wq-tunectl} \
  /usr/share/{fish/vendor_completions.d/wq-tunectl.fish,dbus-1/system.d/org.wqtuned1.conf}; do
  [ -s "$file" ] || fail "no $file"
done

note "-- as a distribution tests it"
/usr/lib/wq-tests/autopkgtest-daemon || fail "debian/tests/daemon: exit code $?"

note "-- enable and start"
apply_policy "$scope"
systemctl enable --quiet --now wq-tuned
expect_scope "$wq" "$scope"
check_eq "state, as nobody sees it" running "$(setpriv --reuid=65534 --clear-groups --regid=65534 wq-tunectl status --json | jq -r .daemon.state)"

note "-- journalctl -x knows our messages"
journalctl --sync
catalog=$(journalctl -x -u wq-tuned --no-pager)
grep -qF "Subject: The affinity scope of workqueue $wq was set" <<<"$catalog" || fail "no catalog entry: $catalog"

note "-- upgrade: restarted, and not one write"
pid=$(systemctl show -P MainPID wq-tuned)
baseline=$(cat /run/wq-tuned/owned.json)
mark
install next
check_eq "installed" "$(dpkg-deb -f /usr/lib/wq-tests/wq-tuned-next.deb Version)" "$(dpkg-query -W -f '${Version}' wq-tuned)"
is_active || fail "not running after the upgrade"
[ "$(systemctl show -P MainPID wq-tuned)" != "$pid" ] || fail "the old daemon still runs"
check_eq "scope" "$scope" "$(scope_of "$wq")"
check_eq "writes of the new daemon" 0 "$(daemon_field writes)"
check_eq "baseline" "$baseline" "$(cat /run/wq-tuned/owned.json)"
check_eq "enabled" enabled "$(systemctl is-enabled wq-tuned)"
said=$(since_mark)
grep -q "^wq-tuned [0-9]" <<<"$said" || fail "the new daemon did not log its start: $said"
! grep -q "back to" <<<"$said" || fail "something was put back: $said"

note "-- upgrade of a daemon that is stopped"
systemctl stop wq-tuned
check_eq "stopped" default "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope")"
install next
check_eq "running" inactive "$(systemctl is-active wq-tuned)"

note "-- where policy-rc.d lets nothing be stopped, what runs keeps its programs"
start_to "$wq" "$scope"
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d
if dpkg --remove wq-tuned 2>/run/wq-tests/err; then fail "removed"; fi
rm /usr/sbin/policy-rc.d
grep -q "cannot stop wq-tuned.service" /run/wq-tests/err || fail "dpkg says: $(cat /run/wq-tests/err)"
is_active || fail "not running"
expect_scope "$wq" "$scope"

note "-- remove: settings back, though the policy keeps them; the policy stays"
sed -i '1i daemon.on_exit = "keep"' /etc/wq-tuned/wq-tuned.toml
systemctl reload wq-tuned
systemctl stop wq-tuned
check_eq "kept by a stop" "$scope" "$(scope_of "$wq")"
if flock /run/wq-tuned/lock dpkg --remove wq-tuned 2>/run/wq-tests/err; then fail "removed beside what holds the settings"; fi
grep -q "another process holds the lock" /run/wq-tests/err || fail "dpkg says: $(cat /run/wq-tests/err)"
check_eq "kept" "$scope" "$(scope_of "$wq")"
remove
check_eq "scope" default "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope")"
check_eq "entries" 0 "$(entries)"
[ -e /etc/wq-tuned/wq-tuned.toml ] || fail "the policy is gone"

note "-- a unit that systemd cannot load does not keep the package from going"
install now
mkdir -p /etc/systemd/system/wq-tuned.service.d
printf '[Service]\nExecStart=/bin/true\n' >/etc/systemd/system/wq-tuned.service.d/broken.conf
systemctl daemon-reload
check_eq "the unit" bad-setting "$(systemctl show -P LoadState wq-tuned)"
remove || fail "dpkg --remove: exit code $?"
rm -r /etc/systemd/system/wq-tuned.service.d
systemctl daemon-reload

note "-- a purge does not forget what could not be put back, and says so"
install now
echo '{' >/run/wq-tuned/owned.json
purge 2>/run/wq-tests/err || fail "dpkg --purge: $(cat /run/wq-tests/err)"
grep -q "^kept until the next boot, .*: /run/wq-tuned/owned.json$" /run/wq-tests/err || fail "dpkg says: $(cat /run/wq-tests/err)"
check_eq "the baseline" "{" "$(cat /run/wq-tuned/owned.json)"
rm -r /run/wq-tuned

note "-- what ab left is put back before the tool goes, or its package stays"
install now
mkdir -p /run/wq-tuned
jq -n '{version: 1, entries: [{target: "arm on", file: "command", inode: 0, baseline: "[ -e /run/wq-tests/free ]", claim: ["\u0000"],
  strict: null, holder: "policy", note: "", external: false}]}' >/run/wq-tuned/lab.json
rm -f /run/wq-tests/free
dpkg --remove wq-tuned || fail "dpkg --remove: exit code $?"
! dpkg --remove wq-tunectl 2>/run/wq-tests/err || fail "it is gone"
grep -q "to remove the package anyway, delete /run/wq-tuned/lab.json first" /run/wq-tests/err || fail "dpkg says: $(cat /run/wq-tests/err)"
check_eq "the undo" "arm on" "$(jq -r .entries[0].target /run/wq-tuned/lab.json)"
! flock /run/wq-tuned/lock dpkg --remove wq-tunectl 2>/run/wq-tests/err || fail "gone beside an ab"
grep -q "a process holds .*wq-tunectl ab or bench" /run/wq-tests/err || fail "dpkg says: $(cat /run/wq-tests/err)"
touch /run/wq-tests/free
dpkg --remove wq-tunectl || fail "dpkg --remove: exit code $?"
[ ! -e /run/wq-tuned/lab.json ] || fail "it was not undone"

note "-- an upgrade keeps what the policy says"
mode() { wq-tunectl cat-config --json | jq -r '"\(.policy.daemon.mode) \(.policy.default_scope.manage)"'; }
rm -rf /etc/wq-tuned /var/lib/wq-tuned
install now
policy <<<$'[daemon]\nmode = "observe"'
install next
check_eq "after the upgrade" "observe true" "$(mode)"
check_eq "whose the tool is now" "wq-tunectl: /usr/bin/wq-tunectl" "$(dpkg --search /usr/bin/wq-tunectl)"
purge

note "-- install again and purge, while it runs"
apply_policy "$scope"
install now
systemctl restart wq-tuned
expect_scope "$wq" "$scope"
[ -n "$(ours_in_run)" ] || fail "no file of ours is found in /run"
purge
check_eq "running" inactive "$(systemctl is-active wq-tuned)"
check_eq "scope" default "$(cut -d' ' -f1 "$workqueues/$wq/affinity_scope")"
[ ! -e /etc/wq-tuned ] || fail "the policy is left"
check_eq "left" "" "$(ours)"
check_eq "left in /run" "" "$(ours_in_run)"
