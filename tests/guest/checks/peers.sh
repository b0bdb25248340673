# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 1500
# The cost of wq-tuned compared with similar daemons. Asserts no figure, only that there are some.
. lib.sh

SCOPE=$(other_scope) /usr/lib/wq-tests/peers.sh
