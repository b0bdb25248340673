# SPDX-License-Identifier: LGPL-2.1-or-later
# Must be reported as failed, with its last line, which has no newline.
. lib.sh
printf 'no end of line'
false
