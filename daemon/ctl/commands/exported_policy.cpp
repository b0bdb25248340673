// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/exported_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/version.h"
#include "ctl/drop_in.h"
#include "ctl/json_values.h"
#include "policy/policy_text.h"
#include "policy/quantity.h"

namespace wq::ctl {
namespace {

const std::string& model_of(const HostFacts& facts) {
    return facts.cpu_models.empty() ? facts.cpu_vendor : facts.cpu_models.front();
}

// Returns "6.12" for "6.12.57+deb13-amd64".
std::string series_of(const std::string& release) {
    Numbers numbers = leading_numbers(release);
    if (numbers.size() > 2) numbers.resize(2);
    return fmt::format("{}", fmt::join(numbers, "."));
}

LearnedTable empty_table(const HostFacts& facts) {
    return {{{"arch", glob_or_null(facts.arch)},
             {"cpu_vendor", glob_or_null(facts.cpu_vendor)},
             {"llc_cores", or_null(facts.llc_cores)},
             {"cores", or_null(facts.cores)},
             {"numa_nodes", or_null(facts.numa_nodes)},
             {"smt", or_null(facts.smt)},
             {"virtual", or_null(facts.is_virtual)},
             {"kernel", glob_or_null(series_of(facts.kernel))},
             {"cpu_model", glob_or_null(facts.cpu_models.empty() ? "" : facts.cpu_models.front())}},
            {}};
}

std::string evidence(const VerdictRecord& record) {
    return fmt::format("{}, {}: {}", record.target, utc_text(record.time), text_of(record));
}

LearnedRule learned(const Lesson& lesson) {
    LearnedRule out{lesson.verdicts.back().key.kind, {}, {}, {}};
    if (lesson.kind == Lesson::Kind::use) out.arm = lesson.arm;
    out.had = arm_named(lesson.verdicts.front().key.reference);
    for (const VerdictRecord& record : lesson.opposed)
        out.notes.push_back("an earlier one says the opposite: " + evidence(record));
    for (const VerdictRecord& record : lesson.verdicts) out.notes.push_back(evidence(record));
    return out;
}

std::string heading(const ExportInput& in) {
    const std::string& model = model_of(in.facts);
    std::string out = fmt::format(
        "# wq-tuned's policy for machines of one kind: what experiments on one of them found. For\n"
        "# /etc/wq-tuned/wq-tuned.toml.d/NAME.toml; see wq-tuned.toml(5).\n"
        "#\n"
        "# Exported {} by wq-tunectl {} on\n",
        utc_text(in.now), version());
    out += toml_comment("  kernel:   " + in.facts.kernel) + "\n";
    out += toml_comment("  CPU:      " + (model.empty() ? "not known" : model)) + "\n";
    out += toml_comment("  topology: " + in.topology) + "\n";
    return out +
           "#\n"
           "# Each rule has the verdicts that it rests on. An effect describes a comparison that stopped "
           "when "
           "it had\n"
           "# seen enough, and so tends to be overstated.\n";
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
    LearnedTable table = empty_table(in.facts);
    for (const Lesson& lesson : in.lessons)
        if (lesson.kind != Lesson::Kind::nothing) table.rules.push_back(learned(lesson));
    if (table.rules.empty()) return "";
    return drop_in("learned", heading(in), {table}, in.now) + footing(in.lessons);
}

}  // namespace wq::ctl
