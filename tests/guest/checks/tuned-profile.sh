# SPDX-License-Identifier: LGPL-2.1-or-later
# conf/tuned with tuned itself, as docs/install.md says: the daemon runs while the profile is active, and no longer.
. lib.sh

cp -r /usr/lib/wq-tests/tuned/wq-tuned /etc/tuned/
trap 'tuned-adm off || true; systemctl stop tuned; rm -r /etc/tuned/wq-tuned' EXIT
crypt_c0
before=$(scope_of "$wq")
apply_policy system
systemctl start tuned
tuned-adm profile throughput-performance wq-tuned
check_eq "active" "Current active profile: throughput-performance wq-tuned" "$(tuned-adm active)"
wait_until 30 is_active || fail "not running: $(cat /var/log/tuned/tuned.log)"
expect_scope "$wq" system
check_eq "not enabled" disabled "$(systemctl is-enabled wq-tuned || true)"

note "-- another profile"
tuned-adm profile throughput-performance
is_stopped() { ! is_active; }
wait_until 30 is_stopped || fail "still running"
check_eq "after it" "$before" "$(scope_of "$wq")"
