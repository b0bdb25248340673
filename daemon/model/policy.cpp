// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/policy.h"

#include <fmt/format.h>
#include <fnmatch.h>

namespace wq {

std::string Origin::text() const {
    return file.empty() ? "built-in" : fmt::format("{}:{}", file, line);
}

std::string ScopeWish::text() const {
    switch (kind) {
        case Kind::automatic:
            return "auto";
        case Kind::leave:
            return "leave";
        case Kind::fixed:
            break;
    }
    return std::string(name_of(scope));
}

std::string_view name_of(Mode mode) {
    switch (mode) {
        case Mode::observe:
            return "observe";
        case Mode::guard:
            return "guard";
        case Mode::tune:
            return "tune";
    }
    return "?";
}

std::string_view name_of(Keep keep) {
    return keep == Keep::if_improved ? "if-improved" : "unless-regressed";
}

bool Hours::contains(unsigned minute_of_day) const {
    if (begin < end) return minute_of_day >= begin && minute_of_day < end;
    return minute_of_day >= begin || minute_of_day < end;
}

const WorkqueueRule* Policy::rule_for(const std::string& name) const {
    for (const WorkqueueRule& rule : rules)
        if (::fnmatch(rule.match.c_str(), name.c_str(), 0) == 0) return &rule;
    return nullptr;
}

}  // namespace wq
