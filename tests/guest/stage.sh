#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Installs the project, and the programs that the checks need, for the guests: stage.sh BUILD-DIR STAGE-DIR.
set -euo pipefail
rm -rf "$2"
DESTDIR=$2 cmake --install "$1" >/dev/null
DESTDIR=$2 cmake --install "$1" --component guest-tests >/dev/null
(cd "$2" && find . -type f | sort)
