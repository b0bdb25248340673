# SPDX-License-Identifier: LGPL-2.1-or-later
# Exits 0, but must be reported as failed, because it leaves settings behind.
. lib.sh
echo cpu >"$workqueues/writeback/affinity_scope"
echo 0 >/sys/devices/system/cpu/cpu5/online
mkdir -p /etc/wq-tuned
drop_in wq-tuned.service <<<$'[Service]\nNice=5'
crypt_open c0
echo cpu >"$workqueues/$(wq_of c0)/affinity_scope"
