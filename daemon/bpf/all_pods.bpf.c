/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
#include "pods_program.h"

char LICENSE[] SEC("license") = "GPL";
