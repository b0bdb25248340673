// SPDX-License-Identifier: LGPL-2.1-or-later
//
// next_step() decides what one workqueue holds on this host under one policy. lessons_of() decides what the
// comparisons of a class of workqueues found, no matter whether the policy or an operator asked for them, and
// even if no workqueue of the class exists now. The rule is the same: a candidate is compared with a
// baseline, and the winner is the next baseline. So the verdicts of a class are steps from one setting to
// another. The latest verdict that is not undecided selects the steps that count: those that improved, from
// the kernel's setting to the baseline of that verdict, and those that continue from there. If there are
// none, the lesson is `leave`, and the verdicts that regressed are its evidence.
//
// If masks give the workqueues of a class different CPUs, or changed the CPUs of the class, only the verdicts
// on the CPUs of the latest verdict count. Of several verdicts on one pair of arms, the latest counts,
// whatever the judge's settings were; so does the latest of several that improved on one setting. A step with
// a wrong time (in the future) only shows that its candidate was our setting, not the kernel's. If the steps
// contain such a verdict, the lesson is `nothing`.
#include "ctl/commands/lessons.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace wq {
namespace {

// The latest verdict on each pair of arms, for one class.
using Verdicts = std::map<std::pair<std::string, std::string>, const VerdictRecord*>;

bool is_older(const VerdictRecord& a, const VerdictRecord& b) {
    return a.time < b.time;
}

class Class {
  public:
    Class(const LessonInput& in, const Verdicts& verdicts) : in_(in), verdicts_(verdicts) {}

    [[nodiscard]] Lesson lesson() const;

  private:
    // A verdict with a time in the future was recorded while the clock was wrong.
    [[nodiscard]] bool is_trusted(const VerdictRecord& verdict) const { return verdict.time <= in_.now; }
    // Returns the latest verdict that PASS accepts, or nullptr.
    template <class Pass>
    [[nodiscard]] const VerdictRecord* latest(Pass pass) const {
        const VerdictRecord* out = nullptr;
        for (const auto& [arms, verdict] : verdicts_)
            if (pass(*verdict) && (out == nullptr || !is_older(*verdict, *out))) out = verdict;
        return out;
    }
    [[nodiscard]] std::vector<VerdictRecord> steps_to(const std::string& setting) const;
    bool add_steps_from(const std::string& setting, std::vector<VerdictRecord>& steps) const;
    [[nodiscard]] std::vector<VerdictRecord> regressed(const std::string& setting) const;

    const LessonInput& in_;
    const Verdicts& verdicts_;
};

// Returns the verdicts that improved and lead from the kernel's setting to SETTING, including those with a
// wrong time.
std::vector<VerdictRecord> Class::steps_to(const std::string& setting) const {
    std::vector<VerdictRecord> out;
    std::set<std::string> seen{setting};
    for (std::string at = setting;;) {
        const VerdictRecord* before = latest([&](const VerdictRecord& v) {
            return v.outcome == Judgement::improved && v.key.candidate == at;
        });
        if (before == nullptr || !seen.insert(before->key.reference).second) return out;
        out.insert(out.begin(), *before);
        at = before->key.reference;
    }
}

// Adds to STEPS, which end at SETTING, the verdicts that improved and continue from there. Returns false if
// the steps form a circle.
bool Class::add_steps_from(const std::string& setting, std::vector<VerdictRecord>& steps) const {
    std::set<std::string> seen{setting};
    for (const VerdictRecord& step : steps) seen.insert(step.key.reference);
    for (std::string at = setting;; at = steps.back().key.candidate) {
        const VerdictRecord* next = latest([&](const VerdictRecord& v) {
            return is_trusted(v) && v.outcome == Judgement::improved && v.key.reference == at;
        });
        if (next == nullptr) return true;
        if (!seen.insert(next->key.candidate).second) return false;
        steps.push_back(*next);
    }
}

// Returns the verdicts of candidates that regressed against SETTING, oldest first.
std::vector<VerdictRecord> Class::regressed(const std::string& setting) const {
    std::vector<VerdictRecord> out;
    for (const auto& [arms, verdict] : verdicts_)
        if (is_trusted(*verdict) && verdict->outcome == Judgement::regressed && arms.first == setting)
            out.push_back(*verdict);
    std::stable_sort(out.begin(), out.end(), is_older);
    return out;
}

Lesson nothing(const VerdictRecord& last, std::string why) {
    return {Lesson::Kind::nothing, last.target, {}, {last}, std::move(why)};
}

// Returns a lesson to use the candidate of the last of STEPS.
Lesson use(const VerdictRecord& last, std::vector<VerdictRecord> steps) {
    const auto arm = arm_named(steps.back().key.candidate);
    if (!arm || !arm_named(steps.front().key.reference))
        return nothing(last, "has scopes that this version does not know");
    return {Lesson::Kind::use, last.target, *arm, std::move(steps), ""};
}

Lesson Class::lesson() const {
    const auto conclusive = [&](const VerdictRecord& v) {
        return is_trusted(v) && v.outcome != Judgement::undecided;
    };
    const VerdictRecord* last = latest(conclusive);
    if (last == nullptr) {
        last = latest([](const VerdictRecord&) { return true; });
        return nothing(*last, is_trusted(*last) ? "is undecided" : "has a time in the future (wrong clock)");
    }
    const std::string& incumbent = last->key.reference;
    auto steps = steps_to(incumbent);
    if (!std::all_of(steps.begin(), steps.end(), [&](const auto& step) { return is_trusted(step); }))
        return nothing(*last, "depends on a verdict with a time in the future (wrong clock)");
    if (!add_steps_from(incumbent, steps)) return nothing(*last, "contradicts an earlier one");
    if (!steps.empty()) return use(*last, std::move(steps));
    return {Lesson::Kind::leave, last->target, {}, regressed(incumbent), ""};
}

// Settings that @default had because of us, and the setting that it gets on a host that follows its LESSON.
struct DefaultSteps {
    std::set<std::string> ours;  // candidates that did not regress, so they may have been kept
    std::string lesson;          // the arm of the lesson; "" if it has none to use
};

DefaultSteps default_steps(const Verdicts& verdicts, const Lesson& lesson) {
    DefaultSteps out;
    for (const auto& [arms, verdict] : verdicts)
        if (verdict->outcome != Judgement::regressed) out.ours.insert(arms.second);
    if (lesson.kind == Lesson::Kind::use) out.lesson = lesson.arm.name();
    return out;
}

// The comparisons of a workqueue that follows @default start at the setting of @default. If that setting was
// ours, and hosts that follow the lessons will not have it, these comparisons say nothing about the kernel's
// setting.
Lesson beside_default(Lesson lesson, const DefaultSteps& steps) {
    if (lesson.kind == Lesson::Kind::nothing || lesson.name == kDefaultTarget) return lesson;
    const std::string& start = lesson.verdicts.front().key.reference;
    if (!steps.ours.contains(start) || start == steps.lesson) return lesson;
    const VerdictRecord last = lesson.verdicts.back();
    return nothing(last, "depends on a scope that @default had and that this policy does not set");
}

// Whether both are about the same arms, and one improved and the other regressed.
bool are_opposite(const VerdictRecord& a, const VerdictRecord& b) {
    const auto decided = [](const VerdictRecord& v) { return v.outcome != Judgement::undecided; };
    return a.key.reference == b.key.reference && a.key.candidate == b.key.candidate && decided(a) &&
           decided(b) && a.outcome != b.outcome;
}

}  // namespace

std::vector<Lesson> lessons_of(const LessonInput& in) {
    const auto counts = [&](const VerdictRecord& record) {
        return record.judged && record.key.kernel == in.kernel && record.key.topology == in.topology;
    };
    std::map<std::string, std::string> cpus;  // by class
    for (const VerdictRecord& record : in.records)
        if (counts(record)) cpus[record.key.kind] = record.cpus;
    std::map<std::string, Verdicts> classes;
    std::map<std::string, std::vector<const VerdictRecord*>> all;  // by class
    for (const VerdictRecord& record : in.records)
        if (counts(record) && record.cpus == cpus.at(record.key.kind)) {
            classes[record.key.kind][{record.key.reference, record.key.candidate}] = &record;
            all[record.key.kind].push_back(&record);
        }
    std::vector<Lesson> out;
    for (const auto& [kind, verdicts] : classes) {
        Lesson& lesson = out.emplace_back(Class(in, verdicts).lesson());
        for (const VerdictRecord* record : all.at(kind))
            if (record->time <= in.now && std::ranges::any_of(lesson.verdicts, [&](const VerdictRecord& v) {
                    return are_opposite(v, *record);
                }))
                lesson.opposed.push_back(*record);
    }
    const auto moved = classes.find(kDefaultTarget);
    if (moved == classes.end()) return out;
    const auto index = static_cast<std::size_t>(std::distance(classes.begin(), moved));
    const DefaultSteps steps = default_steps(moved->second, out[index]);
    for (Lesson& lesson : out) lesson = beside_default(std::move(lesson), steps);
    return out;
}

}  // namespace wq
