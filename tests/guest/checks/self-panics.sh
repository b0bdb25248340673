# SPDX-License-Identifier: LGPL-2.1-or-later
# A panic must fail the boot, not only the check.
. lib.sh
echo c >/proc/sysrq-trigger
