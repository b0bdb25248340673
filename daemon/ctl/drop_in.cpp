// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/drop_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/text.h"
#include "machine/workqueue.h"
#include "policy/glob.h"
#include "policy/policy.h"
#include "policy/policy_text.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMaxName = 200;  // bytes; a host table's name has at most 255

// If the pattern of class B also matches names of class A, then B has fewer characters other than `#` than A.
bool is_narrower(const LearnedRule& a, const LearnedRule& b) {
    const auto letters = [](const LearnedRule& rule) {
        return std::ranges::count_if(rule.kind, [](char c) { return c != '#'; });
    };
    return letters(a) > letters(b);
}

bool is_default(const LearnedRule& rule) {
    return rule.kind == kDefaultTarget;
}

// For the name of a table; with its number, each table has another name.
std::string conditions(const LearnedTable& table) {
    std::string out;
    for (const auto& [key, value] : table.when)
        if (!value.is_null())
            out += fmt::format("{}{} {}", out.empty() ? "" : ", ", key,
                               value.is_string() ? value.get<std::string>() : value.dump());
    return out.empty() ? "any machine" : printable(out.substr(0, kMaxName));
}

class DropIn {
  public:
    explicit DropIn(std::int64_t now)
        : expires_(fmt::format("expires = \"{:.10}\"\n", utc_text(now + kRuleDays * 86'400L))) {}

    void begin(const std::string& heading) {
        text_ = heading;
        text_ +=
            "#\n"
            "# The scopes that are named here are set at once, compared with the kernel's setting\n"
            "# afterwards, and taken back where they regress. Nothing else is changed. After the rules\n"
            "# have expired, the rules of the other policy files decide, in mode tune. [0-9]* stands for\n"
            "# a number, and would match whatever follows its first digit.\n"
            "\n[daemon]\nmode = \"tune\"\n";
    }
    void add(const std::string& name, const LearnedTable& table) {
        text_ += fmt::format("\n[[host]]\nname = {}\n\n[host.when]\n", toml_text(name + conditions(table)));
        for (const auto& [key, value] : table.when)
            text_ += value.is_null() ? fmt::format("# {} is not known, so there is no condition on it\n", key)
                                     : fmt::format("{} = {}\n", key, toml_text(value));
        std::vector<LearnedRule> rules = table.rules;
        std::ranges::stable_sort(rules, is_narrower);
        const auto found = std::ranges::find_if(rules, is_default);
        if (found != rules.end()) add_default(*found);
        const bool moved = found != rules.end() && found->arm;
        for (const LearnedRule& rule : rules)
            if (!is_default(rule)) add_rule(rule, moved);
    }
    [[nodiscard]] std::string end() {
        text_ += "\n# Everything else:\n[[workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n" + expires_ +
                 "\n[default_scope]\nmanage = false\n" + expires_;
        return std::move(text_);
    }

  private:
    void add_notes(const LearnedRule& rule) {
        text_ += '\n';
        for (const std::string& note : rule.notes) text_ += toml_comment(note) + "\n";
    }
    // The keys that follow the scope. `explain` shows the evidence.
    void add_end(const LearnedRule& rule) {
        text_ += expires_ + fmt::format("evidence = {}\n",
                                        toml_text(printable(rule.notes.back().substr(0, kMaxEvidence / 2))));
    }
    void add_default(const LearnedRule& rule) {
        add_notes(rule);
        text_ += "[host.default_scope]\n";
        text_ += rule.arm ? fmt::format("manage = true\nscope = \"{}\"\n", name_of(rule.arm->scope))
                          : "manage = false\n";
        add_end(rule);
    }
    void add_rule(const LearnedRule& rule, bool default_moves) {
        add_notes(rule);
        const auto& arm = rule.arm || !default_moves ? rule.arm : rule.had;
        if (arm && !rule.arm) text_ += "# not \"leave\": it would follow @default\n";
        text_ += fmt::format("[[host.workqueue]]\nmatch = {}\nscope = \"{}\"\n",
                             toml_text(glob_of_kind(rule.kind)), arm ? name_of(arm->scope) : "leave");
        if (arm && (arm->strict || (rule.had && rule.had->strict)))
            text_ += fmt::format("strict = {}\n", arm->strict.value_or(false));
        add_end(rule);
    }

    std::string expires_;
    std::string text_;
};

}  // namespace

std::string drop_in(const std::string& source, const std::string& heading,
                    const std::vector<LearnedTable>& tables, std::int64_t now) {
    DropIn out(now);
    out.begin(heading);
    for (std::size_t i = 0; i < tables.size(); i++) out.add(fmt::format("{} {}: ", source, i + 1), tables[i]);
    return out.end();
}

}  // namespace wq::ctl
