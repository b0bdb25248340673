// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/target.h"

#include "machine/udev.h"

namespace wq {

std::string_view name_of(State state) {
    constexpr std::string_view kNames[] = {"unmanaged", "leave",    "as-planned",  "waiting",
                                           "comparing", "set",      "kept",        "reverted",
                                           "pinned",    "external", "unsupported", "quarantined"};
    static_assert(std::size(kNames) == std::size(kAllStates));
    return kNames[static_cast<std::size_t>(state)];
}

bool Listed::waits_for_udev() const {
    return !opted_out && now.untouchable == kNotProcessedByUdev;
}

void Target::see(const Look& look) {
    last = {look.scope ? look.scope->word : "", look.strict};
    if (look.scope) now.scope = *look.scope;
    if (look.strict) now.strict = look.strict;
}

void Target::wrote(const Values& values) {
    now.scope = {values.main, values.main == "default" ? before : scope_named(values.main)};
    if (values.strict) now.strict = values.strict;
    last = {values.main, values.strict ? values.strict : last.strict};
}

}  // namespace wq
