// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/learned.h"
#include "targets/inventory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <map>
#include <set>

#include "base/text.h"
#include "base/version.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "ctl/topology_source.h"
#include "machine/paths.h"
#include "machine/workqueue.h"
#include "plan/pods.h"
#include "policy/policy.h"
#include "policy/policy_text.h"
#include "policy/quantity.h"
#include "policy/rule_warnings.h"

// What verdicts say about a class
// ===============================
//
// next_step() decides what one workqueue holds under one policy, rules_of() what the comparisons of a class
// found. The rule is the same: the winner of a comparison is the next baseline, so the verdicts of a class
// are steps from one setting to another. The latest verdict that is not undecided selects the steps that
// count: those that improved, from the kernel's setting to the baseline of that verdict, and those that
// continue from there. If there are none, the rule is `leave`, and the verdicts that regressed are its
// evidence.
//
// Only verdicts on the CPUs of the latest one count (masks may differ). Of several on one pair of arms, the
// latest counts; so does the latest of several that improved on one setting. A step with a time in the future
// only shows that its candidate was our setting, not the kernel's: then there is no rule.

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

namespace {

// The latest verdict on each pair of arms, for one class.
using Verdicts = std::map<std::pair<std::string, std::string>, const VerdictRecord*>;
using Records = std::vector<const VerdictRecord*>;  // of one class

// What the verdicts on one class say.
struct Lesson {
    bool use = false;  // the candidate of the last of `verdicts`; else the class is left, or see `why_none`
    // The evidence: for `use`, the steps in their order; else the verdicts that regressed, oldest first; or
    // the verdict that `why_none` is about.
    Records verdicts;
    std::string why_none = {};
};

bool is_older(const VerdictRecord* a, const VerdictRecord* b) {
    return a->time < b->time;
}

class Class {
  public:
    Class(const Verdicts& verdicts, std::int64_t now) : verdicts_(verdicts), now_(now) {}

    [[nodiscard]] Lesson lesson() const {
        const VerdictRecord* last = latest(
            [&](const VerdictRecord& v) { return is_trusted(v) && v.outcome != Judgement::undecided; });
        if (last == nullptr) {
            last = latest([](const VerdictRecord&) { return true; });
            return {
                false, {last}, is_trusted(*last) ? "is undecided" : "has a time in the future (wrong clock)"};
        }
        const std::string& incumbent = last->key.reference;
        Records steps = steps_to(incumbent);
        if (!std::ranges::all_of(steps, [&](const auto* step) { return is_trusted(*step); }))
            return {false, {last}, "depends on a verdict with a time in the future (wrong clock)"};
        if (!add_steps_from(incumbent, steps)) return {false, {last}, "contradicts an earlier one"};
        if (steps.empty()) return {false, regressed(incumbent)};
        if (!arm_named(steps.back()->key.candidate) || !arm_named(steps.front()->key.reference))
            return {false, {last}, "has scopes that this version does not know"};
        return {true, steps};
    }

  private:
    // A verdict with a time in the future was recorded while the clock was wrong.
    [[nodiscard]] bool is_trusted(const VerdictRecord& verdict) const { return verdict.time <= now_; }
    // Returns the latest verdict that PASS accepts, or nullptr.
    template <class Pass>
    [[nodiscard]] const VerdictRecord* latest(Pass pass) const {
        const VerdictRecord* out = nullptr;
        for (const auto& [arms, verdict] : verdicts_)
            if (pass(*verdict) && (out == nullptr || !is_older(verdict, out))) out = verdict;
        return out;
    }
    // Returns the verdicts that improved and lead from the kernel's setting to SETTING, including those with
    // a wrong time.
    [[nodiscard]] Records steps_to(const std::string& setting) const {
        Records out;
        std::set<std::string> seen{setting};
        for (std::string at = setting;;) {
            const VerdictRecord* before = latest([&](const VerdictRecord& v) {
                return v.outcome == Judgement::improved && v.key.candidate == at;
            });
            if (before == nullptr || !seen.insert(before->key.reference).second) return out;
            out.insert(out.begin(), before);
            at = before->key.reference;
        }
    }
    // Adds to STEPS, which end at SETTING, the verdicts that improved and continue from there. Returns false
    // if the steps form a circle.
    bool add_steps_from(const std::string& setting, Records& steps) const {
        std::set<std::string> seen{setting};
        for (const VerdictRecord* step : steps) seen.insert(step->key.reference);
        for (std::string at = setting;; at = steps.back()->key.candidate) {
            const VerdictRecord* next = latest([&](const VerdictRecord& v) {
                return is_trusted(v) && v.outcome == Judgement::improved && v.key.reference == at;
            });
            if (next == nullptr) return true;
            if (!seen.insert(next->key.candidate).second) return false;
            steps.push_back(next);
        }
    }
    // Returns the verdicts of candidates that regressed against SETTING, oldest first.
    [[nodiscard]] Records regressed(const std::string& setting) const {
        Records out;
        for (const auto& [arms, verdict] : verdicts_)
            if (is_trusted(*verdict) && verdict->outcome == Judgement::regressed && arms.first == setting)
                out.push_back(verdict);
        std::ranges::stable_sort(out, is_older);
        return out;
    }

    const Verdicts& verdicts_;
    std::int64_t now_;
};

// The comparisons of a workqueue that follows @default start at the setting of @default. If that setting was
// ours (a candidate that did not regress may have been kept), and hosts that follow MOVED, the lesson on
// @default, will not have it, these comparisons say nothing about the kernel's setting.
void leave_out_followers(std::map<std::string, Lesson>& lessons, const Verdicts& of_default) {
    std::set<std::string> ours;
    for (const auto& [arms, verdict] : of_default)
        if (verdict->outcome != Judgement::regressed) ours.insert(arms.second);
    const Lesson& moved = lessons.at(kDefaultTarget);
    if (moved.use) ours.erase(moved.verdicts.back()->key.candidate);
    for (auto& [kind, lesson] : lessons)
        if (kind != kDefaultTarget && lesson.why_none.empty() &&
            ours.contains(lesson.verdicts.front()->key.reference))
            lesson = {false,
                      {lesson.verdicts.back()},
                      "depends on a scope that @default had and that this policy does not set"};
}

// Whether both are about the same arms, and one improved and the other regressed.
bool are_opposite(const VerdictRecord& a, const VerdictRecord& b) {
    return a.key.reference == b.key.reference && a.key.candidate == b.key.candidate &&
           a.outcome != Judgement::undecided && b.outcome != Judgement::undecided && a.outcome != b.outcome;
}

std::string evidence(const VerdictRecord& record) {
    return fmt::format("{}, {}: {}", record.target, utc_text(record.time), text_of(record));
}

LearnedRule learned(const std::string& kind, const Lesson& lesson, const Records& all, std::int64_t now) {
    LearnedRule out{kind, {}, arm_named(lesson.verdicts.front()->key.reference), {}, lesson.why_none};
    if (lesson.use) out.arm = arm_named(lesson.verdicts.back()->key.candidate);
    for (const VerdictRecord* record : all)
        if (record->time <= now && lesson.why_none.empty() &&
            std::ranges::any_of(lesson.verdicts, [&](const auto* v) { return are_opposite(*v, *record); }))
            out.notes.push_back("an earlier one says the opposite: " + evidence(*record));
    for (const VerdictRecord* record : lesson.verdicts) out.notes.push_back(evidence(*record));
    return out;
}

}  // namespace

std::vector<LearnedRule> rules_of(const VerdictInput& in) {
    struct OfClass {
        Verdicts verdicts;
        Records all;
        std::string cpus;
    };
    std::map<std::string, OfClass> classes;
    const auto counts = [&](const VerdictRecord& record) {
        return record.judged && record.key.kernel == in.kernel && record.key.topology == in.topology;
    };
    for (const VerdictRecord& record : in.records)
        if (counts(record)) classes[record.key.kind].cpus = record.cpus;
    for (const VerdictRecord& record : in.records) {
        if (!counts(record)) continue;
        OfClass& one = classes.at(record.key.kind);
        if (record.cpus != one.cpus) continue;
        one.verdicts[{record.key.reference, record.key.candidate}] = &record;
        one.all.push_back(&record);
    }
    std::map<std::string, Lesson> lessons;
    for (const auto& [kind, one] : classes) lessons[kind] = Class(one.verdicts, in.now).lesson();
    if (const auto moved = classes.find(kDefaultTarget); moved != classes.end())
        leave_out_followers(lessons, moved->second.verdicts);
    std::vector<LearnedRule> out;
    for (const auto& [kind, one] : classes) out.push_back(learned(kind, lessons.at(kind), one.all, in.now));
    return out;
}

namespace {

// Returns "6.12" for "6.12.57+deb13-amd64".
std::string series_of_release(const std::string& release) {
    Numbers numbers = leading_numbers(release);
    if (numbers.size() > 2) numbers.resize(2);
    return fmt::format("{}", fmt::join(numbers, "."));
}

LearnedTable table_for(const HostFacts& facts) {
    return {{{"arch", glob_or_null(facts.arch)},
             {"cpu_vendor", glob_or_null(facts.cpu_vendor)},
             {"llc_cores", or_null(facts.llc_cores)},
             {"cores", or_null(facts.cores)},
             {"numa_nodes", or_null(facts.numa_nodes)},
             {"smt", or_null(facts.smt)},
             {"virtual", or_null(facts.is_virtual)},
             {"kernel", glob_or_null(series_of_release(facts.kernel))},
             {"cpu_model", glob_or_null(facts.cpu_models.empty() ? "" : facts.cpu_models.front())}},
            {}};
}

std::string export_heading(const HostFacts& facts, const VerdictInput& in) {
    const std::string& model = facts.cpu_models.empty() ? facts.cpu_vendor : facts.cpu_models.front();
    std::string out = fmt::format(
        "# wq-tuned's policy for machines of one kind: what experiments on one of them found. For\n"
        "# /etc/wq-tuned/wq-tuned.toml.d/NAME.toml; see wq-tuned.toml(5).\n"
        "#\n"
        "# Exported {} by wq-tunectl {} on\n",
        utc_text(in.now), version());
    out += toml_comment("  kernel:   " + facts.kernel) + "\n";
    out += toml_comment("  CPU:      " + (model.empty() ? "not known" : model)) + "\n";
    out += toml_comment("  topology: " + in.topology) + "\n";
    return out +
           "#\n"
           "# Each rule has the verdicts that it rests on. An effect describes a comparison that stopped "
           "when it had\n"
           "# seen enough, and so tends to be overstated.\n";
}

}  // namespace

std::string exported_policy(const HostFacts& facts, const VerdictInput& in) {
    LearnedTable table = table_for(facts);
    std::string none;
    for (const LearnedRule& rule : rules_of(in))
        if (rule.why_none.empty())
            table.rules.push_back(rule);
        else
            none += toml_comment(fmt::format("  {}: its last verdict {}: {}", rule.kind, rule.why_none,
                                             rule.notes.back())) +
                    "\n";
    if (table.rules.empty()) return "";
    return drop_in("learned", export_heading(facts, in), {table}, in.now) +
           (none.empty() ? "" : "\n# No rule for these classes:\n" + none);
}

int export_policy(const Options& options) {
    VerdictStore store(Paths{options.root}.verdicts());
    if (const auto read = store.read(); !read) return complain(read.error().text);
    const auto topology = read_topology(options.topology, options.root);
    if (!topology) return complain(topology.error().text);
    for (const std::string& warning : topology->warnings) complain(warning);
    const KernelInfo kernel = kernel_of(options);
    // A verdict of any age counts until a newer one replaces it, because the daemon watches a setting that
    // improved and retries one that regressed.
    const std::string text = exported_policy(
        facts_of(options, *topology)(),
        {store.records(), kernel_key(kernel), machine_fingerprint(kernel, *topology), ::time(nullptr)});
    if (text.empty())
        return complain(
            "no verdict of this kernel and topology (without CPUs that are offline now) is improved or "
            "regressed; see history");
    fmt::print("{}", text);
    return kOk;
}

}  // namespace wq::ctl
