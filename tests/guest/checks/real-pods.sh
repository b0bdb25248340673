# SPDX-License-Identifier: LGPL-2.1-or-later
# CPUs that were offline or isolated at boot: wq-tuned reads the pods from the kernel, plans with them, and
# shows where they differ from what the topology suggests.
# timeout: 300
. lib.sh

pods() { "$@" --json | jq -cS .pods; }
crypt_c0
note "topology: $(pods wq-tunectl topology)"
check_eq "where plans have them from" kernel "$(wq-tunectl plan --json | jq -r .pods.source)"
if [ "$(cat /sys/devices/system/cpu/smt/control)" = off ]; then note "not compared with workers yet: siblings are offline"
else check_pods "$wq"; fi

apply_policy "$(other_scope)"
systemctl start wq-tuned
check_eq "the daemon reads them in its sandbox" kernel "$(status | jq -r .kernel.pods.source)"
check_eq "and sees the same" "$(pods wq-tunectl topology)" "$(status | jq -cS .kernel.pods)"
check_eq "state" set "$(target "$wq" state)"
expect_scope "$wq" "$(other_scope)"
systemctl stop wq-tuned
expect_scope "$wq" default

# CPUs that come online now stay in the pods that the kernel made at boot.
if [ "$(cat /sys/devices/system/cpu/smt/control)" = off ]; then
  echo on >/sys/devices/system/cpu/smt/control
  sleep 2
  note "with SMT: $(pods wq-tunectl topology)"
  wq-tunectl topology
  check_pods "$wq"
  check_eq "siblings that were offline are alone" \
    "$(seq 0 $(($(nproc) - 1)))" "$(wq-tunectl topology --json | jq -r '.pods.differ.smt[]')"
  grep -q "The kernel's pods of smt differ" <<<"$(wq-tunectl topology)" || fail "topology does not show it"
fi
crypt_close c0
