# SPDX-License-Identifier: LGPL-2.1-or-later
# Metrics with the real unit: the folders to which its sandbox lets it write, the messages for others, and
# when the file is removed.
# timeout: 1200
# (tests/metrics checks that Prometheus reads them.)
. lib.sh

scope=$(other_scope)
crypt_c0
trap 'unhang; rm -rf /var/lib/prometheus /srv/textfiles /run/systemd/system/wq-tuned-restore.service.d' EXIT
# Owners as in Debian's prometheus-node-exporter: its user has the parent folder, root this one.
folder=/var/lib/prometheus/node-exporter
install -d -m 0755 -o 4242 -g 4242 /var/lib/prometheus
install -d -m 0755 $folder
file=$folder/wq-tuned.prom
unhang() {
  dmsetup resume lower 2>/dev/null || true
  for device in upper lower; do [ ! -e /dev/mapper/$device ] || dmsetup remove --retry $device; done
}
metrics_policy() { # PATH
  apply_policy "$scope"
  printf '[metrics]\ntextfile = "%s"\n' "$1" >>/etc/wq-tuned/wq-tuned.toml
}
tells() { grep -qxF "$1" "${2:-$file}" 2>/dev/null; } # LINE [FILE]
expect_line() { wait_until 10 tells "$@" || fail "no line $1 in: $(cat "${2:-$file}" 2>&1)"; }
expect_said() { # WORDS
  journalctl --sync
  grep -qF "$1" <<<"$(since_mark)" || fail "the journal does not say '$1': $(since_mark)"
}
gone() { [ ! -e "$file" ]; }

note "-- the default place"
metrics_policy $file
drop_in wq-tuned.service <<<$'[Service]\nWatchdogSec=0\nEnvironment=WATCHDOG_USEC=6000000' # a tick every three seconds
systemctl start wq-tuned
expect_line "wq_tuned_target_state{target=\"$wq\",state=\"set\"} 1"
check_eq "its record" $file "$(cat /run/wq-tuned/textfile)"
check_eq "owner and mode" "root 644" "$(stat -c '%U %a' $file)"
setpriv --reuid=65534 --clear-groups --regid=65534 cat $file >/dev/null
hash=$(wq-tunectl cat-config --json | jq -cj .policy | xxhsum -H64 | cut -d' ' -f1)
sources=$(xxhsum -H64 </etc/wq-tuned/wq-tuned.toml | cut -d' ' -f1)
expect_line "wq_tuned_policy_info{hash=\"$hash\",sources=\"$sources\"} 1"

note "-- quiet costs nothing"
looked() { [ "$(since_mark | grep -c '^looked: ')" -ge "$1" ]; } # TIMES
systemctl service-log-level wq-tuned debug
mark
wait_until 30 looked 2 || fail "no ticks"
inode=$(stat -c %i $file)
wait_until 30 looked 4 || fail "no more ticks"
check_eq "inode after two ticks" "$inode" "$(stat -c %i $file)"

note "-- health: work that hangs behind a suspended device, its end, and counts over our own switches"
# kcryptd waits for memory once dm-crypt has 2% of it (of all its devices together) in writes that do not end.
dmsetup create lower --table "0 131072 linear /dev/ram1 0"
key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
dmsetup create upper --table "0 131072 crypt aes-xts-plain64 $key$(rev <<<"$key") 0 /dev/mapper/lower 0"
hangs=$(wq_of upper)
health() { sed -nE "s/^wq_tuned_workqueue_$1\{workqueue=\"$hangs\"\} (.*)/\1/p" $file; } # METRIC
is() { awk -v value="$(health "$1")" -v least="$2" -v most="$3" 'BEGIN { exit !(value != "" && value >= least && value <= most) }'; }
expect_health() { wait_until "$4" is "$1" "$2" "$3" || fail "$1 is '$(health "$1")', not $2 to $3"; } # METRIC LEAST MOST SECONDS
expect_health in_flight 0 0 300
dmsetup suspend --noflush --nolockfs lower
dd if=/dev/zero of=/dev/mapper/upper bs=1M count=60 conv=fdatasync status=none &
writer=$!
expect_health stalled_seconds 50 10000 300
expect_health in_flight 1 100000 1
ended=$(health completed_total)
dmsetup resume lower
wait $writer
expect_health stalled_seconds 0 0 300
expect_health in_flight 0 0 300
is completed_total "$ended" 1000000 || fail "a counter fell: from $ended to $(health completed_total)"
# A write of 4 KiB is one item. Half of them are counted before a write of ours, which zeroes the kernel's counts.
write_1000() { dd if=/dev/zero of=/dev/mapper/upper bs=4k count=1000 oflag=direct status=none; }
ended=$(health completed_total)
write_1000
wq-tunectl pin "$hangs" numa
expect_scope "$hangs" numa
write_1000
expect_health completed_total $((ended + 1980)) $((ended + 4000)) 300
wq-tunectl unpin "$hangs"
unhang
! grep -q 'no metrics of the health' <<<"$(since_mark)" || fail "$(since_mark)"

note "-- a restart leaves no gap"
drop_in wq-tuned.service <<<$'[Service]\nWatchdogSec=0\nEnvironment=WATCHDOG_USEC=1200000000' # no tick for ten minutes
(while [ -e $file ]; do :; done; echo gone >/run/wq-tests/gap) &
watcher=$!
systemctl restart wq-tuned
expect_line "wq_tuned_writes_total 0"
kill $watcher 2>/dev/null || true
wait $watcher 2>/dev/null || true
[ ! -e /run/wq-tests/gap ] || fail "the file was gone while wq-tuned restarted"

note "-- orders show at once, not only at the next tick"
wq-tunectl revert "$wq"
expect_line 'wq_tuned_reverts_total{by="order"} 1'
wq-tunectl unpin "$wq"
expect_line "wq_tuned_target_state{target=\"$wq\",state=\"set\"} 1"

note "-- a stop takes it away"
systemctl stop wq-tuned
gone || fail "it is still there"
[ ! -e /run/wq-tuned/textfile ] || fail "its record is still there"

note "-- a kill too"
drop_in wq-tuned.service <<<$'[Service]\nRestart=no'
systemctl start wq-tuned
expect_line "wq_tuned_policy_broken 0"
systemctl kill --signal=KILL wq-tuned
wait_until 10 gone || fail "it outlived the daemon"

note "-- somebody else's folder: said once, with what helps; then a group's"
mark
chown 4242:60 $folder
systemctl start wq-tuned
expect_said "Permission denied; see METRICS in wq-tuned(8)"
systemctl reload wq-tuned
is_active || fail "not running"
chmod 0775 $folder
drop_in wq-tuned.service <<<$'[Service]\nSupplementaryGroups=60'
systemctl restart wq-tuned
expect_line "wq_tuned_policy_broken 0"
check_eq "said" 1 "$(since_mark | grep -c 'no metrics: ')" # the old daemon has ended, and waited for its last write
systemctl stop wq-tuned
gone || fail "it is still there"

note "-- another folder needs a drop-in, by the same lines for both units"
install -d /srv/textfiles
other=/srv/textfiles/host.prom
metrics_policy $other
mark
systemctl start wq-tuned
expect_said "Read-only file system; see METRICS in wq-tuned(8)"
mark
systemctl stop wq-tuned
check_eq "said at a stop of what never was" 0 "$(since_mark | grep -c 'removing' || true)"
[ ! -e /run/wq-tuned/textfile ] || fail "its record is still there"
for unit in wq-tuned wq-tuned-restore; do drop_in $unit.service <<<$'[Service]\nReadWritePaths=-/srv/textfiles'; done
systemctl start wq-tuned
expect_line "wq_tuned_policy_broken 0" $other

note "-- a folder that nobody made"
metrics_policy /srv/textfiles/none/host.prom
mark
systemctl reload wq-tuned
expect_said "No such file or directory; see METRICS"
[ ! -e $other ] || fail "the file of the old policy is still there"
systemctl stop wq-tuned

note "-- what a crash of the machine left goes at boot"
chown root:root $folder
chmod 0755 $folder
touch $file
systemd-tmpfiles --remove wq-tuned.conf
[ -e $file ] || fail "it goes at any time"
systemd-tmpfiles --boot --remove wq-tuned.conf
gone || fail "it is still there"
