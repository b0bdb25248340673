// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/exported_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>

#include "base/text.h"
#include "base/version.h"
#include "ctl/json_values.h"
#include "model/workqueue.h"
#include "policy/glob.h"
#include "policy/number_range.h"
#include "policy/policy_text.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxModel = 128;  // bytes; a host table's name has at most 255

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// A pattern for the class of NAME. fnmatch(3) cannot match a number; the closest is a digit followed by
// anything.
std::string glob_of_class(const std::string& name) {
    std::string out;
    for (std::size_t i = 0; i < name.size(); i++)
        if (!is_digit(name[i]))
            add_literal(name[i], out);
        else if (i == 0 || !is_digit(name[i - 1]))
            out += "[0-9]*";
    return out;
}

// For sorting narrower patterns first. If the pattern of class B also matches names of class A, then names of
// A have more non-digits: those of the pattern, and those that its `*` matches.
bool is_narrower(const Lesson& a, const Lesson& b) {
    const auto letters = [](const std::string& name) {
        return std::ranges::count_if(name, std::not_fn(is_digit));
    };
    return letters(a.name) > letters(b.name);
}

struct Condition {
    const char* key;
    Json value;  // null if not known
};

const std::string& model_of(const HostFacts& facts) {
    return facts.cpu_models.empty() ? facts.cpu_vendor : facts.cpu_models.front();
}

// Returns "6.12" for "6.12.57+deb13-amd64".
std::string series_of(const std::string& release) {
    Numbers numbers = leading_numbers(release);
    if (numbers.size() > 2) numbers.resize(2);
    return fmt::format("{}", fmt::join(numbers, "."));
}

std::vector<Condition> conditions(const HostFacts& facts) {
    return {{"arch", glob_or_null(facts.arch)},
            {"cpu_vendor", glob_or_null(facts.cpu_vendor)},
            {"cpu_model", facts.cpu_models.empty() ? Json() : glob_or_null(facts.cpu_models.front())},
            {"llc_cores", or_null(facts.llc_cores)},
            {"cores", or_null(facts.cores)},
            {"numa_nodes", or_null(facts.numa_nodes)},
            {"smt", or_null(facts.smt)},
            {"virtual", or_null(facts.is_virtual)},
            {"kernel", glob_or_null(series_of(facts.kernel))}};
}

// Host tables of one policy need different names, so the name contains all conditions.
std::string host_name(const HostFacts& facts) {
    std::vector<std::string> parts;
    if (const auto& model = model_of(facts); !model.empty())
        parts.push_back(printable(model.substr(0, kMaxModel)));
    else if (!facts.arch.empty())
        parts.push_back(printable(facts.arch));
    if (facts.cores) parts.push_back(fmt::format("{} cores", *facts.cores));
    if (facts.llc_cores) parts.push_back(fmt::format("{} per LLC", *facts.llc_cores));
    if (facts.numa_nodes) parts.push_back(plural(*facts.numa_nodes, "node"));
    if (facts.smt) parts.emplace_back(*facts.smt ? "SMT" : "no SMT");
    if (facts.is_virtual == true) parts.emplace_back("virtual");
    if (const std::string series = series_of(facts.kernel); !series.empty())
        parts.push_back("kernel " + series);
    if (parts.empty()) return "learned";
    return fmt::format("learned: {}", fmt::join(parts, ", "));
}

std::string host_table(const HostFacts& facts) {
    std::string out = fmt::format("\n[[host]]\nname = {}\n\n[host.when]\n", toml_text(host_name(facts)));
    for (const auto& [key, value] : conditions(facts))
        out += value.is_null() ? fmt::format("# {} is not known here, so there is no condition on it\n", key)
                               : fmt::format("{} = {}\n", key, toml_text(value));
    return out;
}

std::string evidence(const VerdictRecord& record) {
    return fmt::format("{}, {}: {}", record.target, utc_text(record.time), text_of(record));
}

std::string evidence_lines(const Lesson& lesson) {
    std::string out = "\n";
    for (const VerdictRecord& record : lesson.verdicts) out += toml_comment(evidence(record)) + "\n";
    for (const VerdictRecord& record : lesson.opposed)
        out += toml_comment("an earlier one says the opposite: " + evidence(record)) + "\n";
    return out;
}

std::string default_table(const Lesson& lesson) {
    std::string out = evidence_lines(lesson) + "[host.default_scope]\n";
    if (lesson.kind == Lesson::Kind::leave) return out + "manage = false\n";
    return out + fmt::format("manage = true\nscope = \"{}\"\n", name_of(lesson.arm.scope));
}

// A workqueue with "leave" follows @default. If @default changes to a scope that a trial found worse for
// this workqueue, the rule must name its previous scope. Empty if this is not the case.
std::string instead_of_leave(const Lesson& lesson, const Lesson* default_lesson) {
    if (default_lesson == nullptr || default_lesson->kind != Lesson::Kind::use) return "";
    for (const VerdictRecord& record : lesson.verdicts) {
        const auto worse = arm_named(record.key.candidate);
        const auto had = arm_named(record.key.baseline);
        if (worse && had && worse->scope == default_lesson->arm.scope)
            return std::string(name_of(had->scope));
    }
    return "";
}

std::string rule(const Lesson& lesson, const Lesson* default_lesson) {
    std::string out = evidence_lines(lesson);
    std::string scope(name_of(lesson.arm.scope));
    if (lesson.kind == Lesson::Kind::leave) {
        scope = instead_of_leave(lesson, default_lesson);
        if (!scope.empty())
            out += "# not \"leave\": it would follow @default\n";
        else
            scope = "leave";
    }
    out += fmt::format("[[host.workqueue]]\nmatch = {}\nscope = \"{}\"\n",
                       toml_text(glob_of_class(lesson.name)), scope);
    if (lesson.kind == Lesson::Kind::use && lesson.arm.strict)
        out += fmt::format("strict = {}\n", *lesson.arm.strict);
    return out;
}

std::string heading(const ExportInput& in) {
    const std::string& model = model_of(in.facts);
    std::string out = fmt::format(
        "# wq-tuned's policy for machines of one kind: what trials on one of them found. For\n"
        "# /etc/wq-tuned/wq-tuned.toml.d/NAME.toml; see wq-tuned.toml(5).\n"
        "#\n"
        "# Exported {} by wq-tunectl {} on\n",
        utc_text(in.now), version());
    out += toml_comment("  kernel:   " + in.facts.kernel) + "\n";
    out += toml_comment("  CPU:      " + (model.empty() ? "not known" : model)) + "\n";
    out += toml_comment("  topology: " + in.topology) + "\n";
    return out +
           "#\n"
           "# A machine in mode guard or tune tries a scope that is named here against what its kernel has, "
           "and\n"
           "# keeps it if its own trial allows; with apply_unjudged = true in [daemon] it applies it at "
           "once, and\n"
           "# tries it then. A rule with leave, or manage = false, keeps the kernel's setting without a "
           "trial.\n"
           "#\n"
           "# Each rule has the verdicts that it rests on. An effect is of the cost of a counter, with its "
           "95%\n"
           "# interval: below zero is better. It describes a trial that stopped when it had seen enough, and "
           "so\n"
           "# tends to be overstated. [0-9]* stands for a number, and would match whatever follows its first "
           "digit.\n";
}

// Lists the lessons without a rule, and why.
std::string footing(const std::vector<Lesson>& lessons) {
    std::string out;
    for (const Lesson& lesson : lessons)
        if (lesson.kind == Lesson::Kind::nothing)
            out += toml_comment(fmt::format("  {}: its last verdict {}: {}", lesson.verdicts.back().key.kind,
                                            lesson.why, evidence(lesson.verdicts.back()))) +
                   "\n";
    return out.empty() ? "" : "\n# No rule for these classes:\n" + out;
}

}  // namespace

std::string exported_policy(const ExportInput& in) {
    std::vector<Lesson> rules;
    for (const Lesson& lesson : in.lessons)
        if (lesson.kind != Lesson::Kind::nothing) rules.push_back(lesson);
    if (rules.empty()) return "";
    std::stable_sort(rules.begin(), rules.end(), is_narrower);
    const auto is_default = [](const Lesson& lesson) { return lesson.name == kDefaultTarget; };
    const auto found = std::ranges::find_if(rules, is_default);
    const Lesson* default_lesson = found == rules.end() ? nullptr : &*found;
    std::string out = heading(in) + host_table(in.facts);
    if (default_lesson != nullptr) out += default_table(*default_lesson);
    for (const Lesson& lesson : rules)
        if (!is_default(lesson)) out += rule(lesson, default_lesson);
    return out + footing(in.lessons);
}

}  // namespace wq::ctl
