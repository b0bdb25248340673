# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 1500
# `./dev bench scopes`: published experiments with scopes, scaled down. Asserts no figure, only that there are
# some.
. lib.sh

crypt_c0
note "kernel $guest_release, -smp $guest_smp"
wq-tunectl explain "$wq"
/usr/lib/wq-tests/ab-issuers.sh /dev/mapper/c0 "$wq"
/usr/lib/wq-tests/ab-dm-crypt.sh /dev/mapper/c0 "$wq"
crypt_close c0
