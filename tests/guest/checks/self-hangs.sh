# SPDX-License-Identifier: LGPL-2.1-or-later
# Must be killed with all processes that it started.
# timeout: 3
. lib.sh
sleep 4321 &
sleep 4321
