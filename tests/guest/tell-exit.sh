#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tell-exit.sh COMMAND...: says what it exits with.
code=0
"$@" || code=$?
echo "left with $code"
exit $code
