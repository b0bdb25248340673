# SPDX-License-Identifier: LGPL-2.1-or-later
# conf/selinux, built and loaded as docs/install.md says, with SELinux enforcing: the daemon may do what it
# needs, and no more.
# timeout: 1500
. lib.sh

# Run in unconfined_t, like an administrator's shell; the runner is not unconfined.
[[ $(id -Z) = *:unconfined_t:* ]] || exec runcon -u unconfined_u -r unconfined_r -t unconfined_t bash "$0"
label_of() { ps -o label= -p "$1" | cut -d: -f3; }
denials() { journalctl --sync; journalctl --no-pager -o cat --since="$enforced" _TRANSPORT=audit | grep 'avc:  denied' | grep wq_tuned || true; }

check_eq "mode at boot" Permissive "$(getenforce)"
check_eq "PID 1 is" init_t "$(label_of 1)"
sources=$(mktemp -d)
cp /usr/lib/wq-tests/selinux/* "$sources"
make -C "$sources" -f /usr/share/selinux/devel/Makefile wq_tuned.pp >"$sources/log" 2>&1 || fail "make: $(cat "$sources/log")"
# The guest's root file system is in memory. Unlike on a disk, the policy must allow files of all types there.
printf '(allow %s root_t (filesystem (%s)))\n' file_type associate setfiles_t getattr >"$sources/guest_root.cil"
semodule -i "$sources/wq_tuned.pp" "$sources/guest_root.cil"
note "ok: built and loaded"
restorecon -Ri /usr/sbin/wq-tuned /usr/libexec/wq-tuned-restore /etc/wq-tuned /run/wq-tuned /var/lib/wq-tuned
crypt_open c0 # before enforcing: dmsetup's domain may not write to this check's output
wq=$(wq_of c0)
before=$(scope_of "$wq")
setenforce 1
trap 'setenforce 0' EXIT
enforced=@$EPOCHREALTIME

note "-- a comparison, orders, a reload"
trial_policy auto:system
restorecon -R /etc/wq-tuned
load_on c0
systemctl start wq-tuned
check_eq "the daemon is" wq_tuned_t "$(label_of "$(systemctl show -P MainPID wq-tuned)")"
check_eq "pods" success "$(systemctl show -P Result wq-tuned-pods)"
wait_until 120 has_pairs "$wq" 2 || fail "no pairs: $(status); $(denials)"
note "ok: compared"
load_off
wq-tunectl pin "$wq" system
expect_scope "$wq" system
systemctl reload wq-tuned
wq-tunectl unpin "$wq" || true

note "-- kill -9, a restart, a stop"
apply_policy system
systemctl restart wq-tuned
expect_scope "$wq" system
pid=$(systemctl show -P MainPID wq-tuned)
kill -9 "$pid"
again() { is_active && [ "$(systemctl show -P MainPID wq-tuned)" != "$pid" ] && state_is "$wq" set; }
wait_until 30 again || fail "not started again"
systemctl stop wq-tuned
check_eq "after stop" "$before" "$(scope_of "$wq")"
check_eq "denials" "" "$(denials)"

note "-- it is confined"
start_to "$wq" system
chcon -t shadow_t /etc/wq-tuned/wq-tuned.toml
! wq-tunectl reload 2>/dev/null || fail "it read a file of type shadow_t"
[ -n "$(denials)" ] || fail "nothing was denied"
expect_scope "$wq" system
check_eq "still" Enforcing "$(getenforce)"
setenforce 0
crypt_close c0
