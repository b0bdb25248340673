// SPDX-License-Identifier: LGPL-2.1-or-later
//
// next_step() asks what one workqueue shall hold here under one policy. This asks what a class of workqueues
// taught, by trials of the policy or by hand, also where none of them is there any more. The rule is the
// same: a challenger meets the incumbent, and who wins is the next one's incumbent. So the verdicts of a
// class are steps from one setting to another. The last that is not undecided tells which steps count:
// those that improved, from what the kernel had to the incumbent of that verdict, and those that lead on from
// there. Where none leads anywhere, what regressed is a reason to leave the kernel's setting alone.
//
// Where masks give the workqueues of a class different CPUs, or the class other CPUs than before, the
// verdicts on the CPUs of the last one count. On one pair of arms the last verdict counts, whatever it was
// judged by; of several that improved on one setting, the last. A step on the way by a wrong clock still
// tells that its candidate was one of ours and not the kernel's; that much is known, and no more, so that
// nothing is said.
#include "ctl/commands/lessons.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace wq {
namespace {

// The last verdict on each pair of arms, of one class.
using Verdicts = std::map<std::pair<std::string, std::string>, const VerdictRecord*>;

bool is_older(const VerdictRecord& a, const VerdictRecord& b) {
    return a.time < b.time;
}

class Class {
  public:
    Class(const LessonInput& in, const Verdicts& verdicts) : in_(in), verdicts_(verdicts) {}

    [[nodiscard]] Lesson lesson() const;

  private:
    // One of the future was reached while the clock was wrong.
    [[nodiscard]] bool is_trusted(const VerdictRecord& verdict) const { return verdict.time <= in_.now; }
    // The latest that passes, or nullptr.
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

// What improved, by any clock, from what the kernel had to SETTING.
std::vector<VerdictRecord> Class::steps_to(const std::string& setting) const {
    std::vector<VerdictRecord> out;
    std::set<std::string> seen{setting};
    for (std::string at = setting;;) {
        const VerdictRecord* before = latest([&](const VerdictRecord& v) {
            return v.outcome == TrialOutcome::improved && v.key.candidate == at;
        });
        if (before == nullptr || !seen.insert(before->key.baseline).second) return out;
        out.insert(out.begin(), *before);
        at = before->key.baseline;
    }
}

// Adds to STEPS, which end at SETTING, what improved on it and on. False: in a circle.
bool Class::add_steps_from(const std::string& setting, std::vector<VerdictRecord>& steps) const {
    std::set<std::string> seen{setting};
    for (const VerdictRecord& step : steps) seen.insert(step.key.baseline);
    for (std::string at = setting;; at = steps.back().key.candidate) {
        const VerdictRecord* next = latest([&](const VerdictRecord& v) {
            return is_trusted(v) && v.outcome == TrialOutcome::improved && v.key.baseline == at;
        });
        if (next == nullptr) return true;
        if (!seen.insert(next->key.candidate).second) return false;
        steps.push_back(*next);
    }
}

// What is worse than SETTING.
std::vector<VerdictRecord> Class::regressed(const std::string& setting) const {
    std::vector<VerdictRecord> out;
    for (const auto& [arms, verdict] : verdicts_)
        if (is_trusted(*verdict) && verdict->outcome == TrialOutcome::regressed && arms.first == setting)
            out.push_back(*verdict);
    std::stable_sort(out.begin(), out.end(), is_older);
    return out;
}

Lesson nothing(const VerdictRecord& last, std::string why) {
    return {Lesson::Kind::nothing, last.target, {}, {last}, std::move(why)};
}

// STEPS lead there.
Lesson use(const VerdictRecord& last, std::vector<VerdictRecord> steps) {
    auto arm = arm_named(steps.back().key.candidate);
    const auto had = arm_named(steps.front().key.baseline);
    if (!arm || !had) return nothing(last, "has scopes that this version does not know");
    if (!arm->strict && had->strict) arm->strict = false;
    return {Lesson::Kind::use, last.target, *arm, std::move(steps), ""};
}

Lesson Class::lesson() const {
    const auto conclusive = [&](const VerdictRecord& v) {
        return is_trusted(v) && v.outcome != TrialOutcome::inconclusive;
    };
    const VerdictRecord* last = latest(conclusive);
    if (last == nullptr) {
        last = latest([](const VerdictRecord&) { return true; });
        return nothing(*last, is_trusted(*last) ? "is undecided" : "is of a wrong clock");
    }
    const std::string& incumbent = last->key.baseline;
    auto steps = steps_to(incumbent);
    if (!std::all_of(steps.begin(), steps.end(), [&](const auto& step) { return is_trusted(step); }))
        return nothing(*last, "rests on one of a wrong clock");
    if (!add_steps_from(incumbent, steps)) return nothing(*last, "contradicts an earlier one");
    if (!steps.empty()) return use(*last, std::move(steps));
    return {Lesson::Kind::leave, last->target, {}, regressed(incumbent), ""};
}

// Where @default was by our doing, and where it will be for who follows its LESSON.
struct DefaultSteps {
    std::set<std::string> ours;  // candidates that may have stayed
    std::string lesson;          // "" where there is none to use
};

DefaultSteps default_steps(const Verdicts& verdicts, const Lesson& lesson) {
    DefaultSteps out;
    for (const auto& [arms, verdict] : verdicts)
        if (verdict->outcome != TrialOutcome::regressed) out.ours.insert(arms.second);
    if (lesson.kind == Lesson::Kind::use) out.lesson = lesson.arm.name();
    return out;
}

// A follower's trials begin at what @default holds. Where that was ours and others will not have it, they say
// nothing of the kernel's setting.
Lesson beside_default(Lesson lesson, const DefaultSteps& steps) {
    if (lesson.kind == Lesson::Kind::nothing || lesson.name == kDefaultTarget) return lesson;
    const std::string& start = lesson.verdicts.front().key.baseline;
    if (!steps.ours.contains(start) || start == steps.lesson) return lesson;
    const VerdictRecord last = lesson.verdicts.back();
    return nothing(last, "rests on where @default was for a while");
}

// Whether both are about the same arms, and one improved where the other regressed.
bool are_opposite(const VerdictRecord& a, const VerdictRecord& b) {
    const auto decided = [](const VerdictRecord& v) { return v.outcome != TrialOutcome::inconclusive; };
    return a.key.baseline == b.key.baseline && a.key.candidate == b.key.candidate && decided(a) &&
           decided(b) && a.outcome != b.outcome;
}

}  // namespace

std::vector<Lesson> lessons_of(const LessonInput& in) {
    const auto counts = [&](const VerdictRecord& record) {
        return record.judged && record.key.kernel == in.kernel && record.key.topology == in.topology;
    };
    std::map<std::string, std::string> cpus;  // by class
    for (const VerdictRecord& record : in.records)
        if (counts(record)) cpus[record.key.kind] = record.key.cpus;
    std::map<std::string, Verdicts> classes;
    std::map<std::string, std::vector<const VerdictRecord*>> all;  // by class
    for (const VerdictRecord& record : in.records)
        if (counts(record) && record.key.cpus == cpus.at(record.key.kind)) {
            classes[record.key.kind][{record.key.baseline, record.key.candidate}] = &record;
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
