// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/workqueue.h"

namespace wq {

std::string_view name_of(Kind kind) {
    switch (kind) {
        case Kind::unbound:
            return "unbound";
        case Kind::ordered:
            return "ordered";
        case Kind::per_cpu:
            return "per-cpu";
        case Kind::default_scope:
            return "default";
    }
    return "?";
}

}  // namespace wq
