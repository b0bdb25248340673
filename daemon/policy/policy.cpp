// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/policy.h"

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

std::string PolicyError::text() const {
    if (line == 0) return fmt::format("{}: {}", file, message);
    return fmt::format("{}:{}:{}: {}", file, line, column, message);
}

namespace {

// As wide as the excerpt is before the caret: tabs stay tabs, a character of several bytes is one column.
std::string indent(std::string_view before) {
    std::string out;
    for (char byte : before)
        if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) out += byte == '\t' ? '\t' : ' ';
    return out;
}

}  // namespace

std::string PolicyError::underlined() const {
    if (line == 0) return text();
    std::string out = fmt::format("{}\n{:>5} | {}", text(), line, excerpt);
    if (caret > 0) out += fmt::format("\n{:>5} | {}^", "", indent(excerpt.substr(0, caret - 1)));
    return out;
}

}  // namespace wq
