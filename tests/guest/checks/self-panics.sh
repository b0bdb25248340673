# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A panic must fail the boot, not only the check.
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh
echo c >/proc/sysrq-trigger
