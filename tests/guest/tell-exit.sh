#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tell-exit.sh COMMAND...: runs COMMAND and prints its exit code.
code=0
"$@" || code=$?
echo "left with $code"
exit $code
