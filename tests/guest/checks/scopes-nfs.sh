# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 1500
# The NFS part of `./dev bench scopes`.
. lib.sh

note "kernel $guest_release, -smp $guest_smp"
/usr/lib/wq-tests/ab-nfs.sh smt
