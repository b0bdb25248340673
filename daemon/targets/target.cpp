// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/target.h"

#include "machine/udev.h"

namespace wq {

std::string_view name_of(State state) {
    switch (state) {
        case State::unmanaged:
            return "unmanaged";
        case State::leave:
            return "leave";
        case State::as_planned:
            return "as-planned";
        case State::waiting:
            return "waiting";
        case State::comparing:
            return "comparing";
        case State::set:
            return "set";
        case State::kept:
            return "kept";
        case State::reverted:
            return "reverted";
        case State::pinned:
            return "pinned";
        case State::external:
            return "external";
        case State::unsupported:
            return "unsupported";
        case State::quarantined:
            return "quarantined";
    }
    return "?";
}

bool Listed::waits_for_udev() const {
    return !opted_out && now.untouchable == kNotProcessedByUdev;
}

}  // namespace wq
