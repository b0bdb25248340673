// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"

namespace wq {
namespace {

// The distance of the largest pod's size from the shard size, in powers of two.
double distance(const Candidate& c, unsigned shard_size) {
    return std::abs(std::log2(static_cast<double>(std::max<std::size_t>(c.max_cores, 1)) / shard_size));
}

class Search {
  public:
    explicit Search(const StepInput& in) : in_(in), wish_(*wish_for(in.target, in.policy)) {}

    Step step() {
        if (stays_where_default_was()) return step_;
        if (wish_.sets_first() && sets_first()) return step_;
        challengers_ = challengers();
        references_ = {baseline_arm(in_.target, in_.plan)};
        step_.candidates = static_cast<unsigned>(std::max<std::size_t>(challengers_.size(), 1));
        find_reference();
        find_next();
        return step_;
    }

    // The arms to try, in order. Of arms at the same distance the plan comes first. The arm that was kept
    // under an older kernel comes before all others.
    [[nodiscard]] std::vector<Arm> challengers() const {
        if (wish_.sets_first())
            return wish_.hold || in_.plan.finding != Finding::change
                       ? std::vector<Arm>{}
                       : std::vector{planned_arm(in_.target, in_.plan)};
        const Candidate* now = in_.plan.now ? candidate_with(in_.plan, *in_.plan.now) : nullptr;
        const Candidate* planned = in_.plan.planned ? candidate_with(in_.plan, *in_.plan.planned) : nullptr;
        const bool strict_alone = now != nullptr && planned == now && in_.plan.finding == Finding::change;
        std::vector<const Candidate*> order;
        for (const Candidate& c : in_.plan.candidates) {
            const bool finer = now == nullptr || &c > now;  // coarsest first
            const bool wanted = wish_.candidates.empty() ? finer || &c == planned : is_named(c);
            if (&c == now ? strict_alone : wanted) order.push_back(&c);
        }
        std::stable_sort(order.begin(), order.end(), [&](const Candidate* a, const Candidate* b) {
            const double da = distance(*a, in_.shard_size);
            const double db = distance(*b, in_.shard_size);
            return da != db ? da < db : a == planned && b != planned;
        });
        std::vector<Arm> out;
        for (const Candidate* c : order)
            out.push_back(c == planned ? planned_arm(in_.target, in_.plan) : arm_of(in_.plan, c->scope));
        std::stable_partition(out.begin(), out.end(),
                              [&](const Arm& arm) { return arm.name() == in_.before_upgrade; });
        return out;
    }

  private:
    [[nodiscard]] const LedgerEntry* entry(const Arms& arms, bool from_policy) const {
        return in_.entry ? in_.entry(in_.key(arms, from_policy)) : nullptr;
    }
    [[nodiscard]] const Rest* rest(const Arms& arms) const { return in_.rest ? in_.rest(arms) : nullptr; }

    // Whether the rule lists one of the scopes of C as a candidate.
    [[nodiscard]] bool is_named(const Candidate& c) const {
        return std::ranges::find_first_of(c.same, wish_.candidates) != c.same.end();
    }

    // An arm that is coarser than the reference is compared with it only if it is the plan, or if the rule
    // lists it. An arm that the kernel refused is skipped; the search goes on.
    [[nodiscard]] bool may_meet(const Arm& challenger, const Arm& reference) const {
        if (std::ranges::find(references_, challenger) != references_.end()) return false;
        if (wish_.sets_first()) return true;  // the engine reports a refusal
        if (in_.refuses && in_.refuses(challenger.word())) return false;
        const Candidate* c = candidate_with(in_.plan, challenger.scope);
        const Candidate* r = candidate_with(in_.plan, reference.scope);
        if (c == nullptr || r == nullptr) return true;
        if (c == r) return challenger.strict != reference.strict;
        return c > r || challenger == planned_arm(in_.target, in_.plan) || is_named(*c);
    }

    // Whether CHALLENGER regressed against an earlier reference, which lost against the current one.
    [[nodiscard]] bool lost_before(const Arm& challenger) const {
        for (std::size_t i = 0; i + 1 < references_.size(); i++) {
            const LedgerEntry* known = entry({references_[i], challenger}, i > 0);
            if (known != nullptr && known->judgement == Judgement::regressed) return true;
        }
        return false;
    }

    // Describes the comparison that had the latest pair.
    void say(const LedgerEntry& known) {
        if (known.updated < said_) return;
        said_ = known.updated;
        step_.said = text_of(known);
        step_.verdict = in_.latest ? in_.latest(known.key) : nullptr;
    }

    void find_reference() {
        for (bool moved = true; moved;) {
            moved = false;
            for (const Arm& challenger : challengers_) {
                const Arms arms{references_.back(), challenger};
                if (!may_meet(challenger, references_.back())) continue;
                const LedgerEntry* known = entry(arms, references_.size() > 1);
                if (known == nullptr || known->judgement != Judgement::improved) continue;
                // The watch compares with the baseline, and may have taken this arm back.
                const LedgerEntry* watched = entry({references_.front(), challenger}, false);
                if (watched != nullptr && watched->judgement == Judgement::regressed) continue;
                step_.kind = Step::Kind::kept;
                step_.hold = challenger;
                say(*known);
                step_.watch = Arms{references_.front(), challenger};
                references_.push_back(challenger);
                moved = true;
                break;
            }
        }
    }

    // The first dense comparison. If there is none: of the sparse ones, the one whose last pair is oldest.
    void find_next() {
        std::int64_t oldest = 0;
        for (const Arm& challenger : challengers_) {
            const Arms arms{references_.back(), challenger};
            if (!may_meet(challenger, references_.back()) || lost_before(challenger)) continue;
            const LedgerEntry* known = entry(arms, references_.size() > 1);
            Course course = course_of(known, in_.policy.judge, in_.now);
            if (course == Course::watched) continue;  // improved, and the watch took it back later
            if (known != nullptr && step_.kind != Step::Kind::kept && course != Course::dense) {
                step_.kind = Step::Kind::reverted;
                say(*known);
            }
            if (rest(arms) != nullptr) course = Course::resting;
            const auto rank = [](Course c) { return c == Course::none ? Course::watched : c; };
            const std::int64_t updated = known == nullptr ? 0 : known->updated;
            const bool first = rank(course) < rank(step_.course);
            const bool longer =
                course == Course::sparse && step_.course == Course::sparse && updated < oldest;
            if (!first && !longer) continue;
            step_.next = arms;
            step_.course = course;
            oldest = updated;
        }
    }

    // If @default was moved to a scope that regressed for this class, the target keeps the one before.
    bool stays_where_default_was() {
        if (wish_.hold) return false;
        const auto was = in_.target.scope.effective;
        const auto is = in_.plan.now;
        if (in_.target.kind != Kind::unbound || in_.target.scope.word != "default" || !was || !is ||
            was == is)
            return false;
        const Arms arms{arm_of(in_.plan, *was), arm_of(in_.plan, *is)};
        const LedgerEntry* known = entry(arms, false);
        if (known == nullptr || known->judgement != Judgement::regressed) return false;
        step_.kind = Step::Kind::reverted;
        step_.hold = arms.reference;
        say(*known);
        return true;
    }

    // The arm of the rule is in force from the start, unless it is a suspect or regressed, or the day's
    // budget is used up while it looks worse. One that regressed comes back only when it improved. Returns
    // false if the ledger decides.
    bool sets_first() {
        const Arms arms{baseline_arm(in_.target, in_.plan), planned_arm(in_.target, in_.plan)};
        if (in_.plan.finding != Finding::change) return true;
        const LedgerEntry* known = entry(arms, false);
        if (known != nullptr && known->judgement != Judgement::undecided && !wish_.hold) return false;
        step_.kind = Step::Kind::set;
        step_.hold = arms.candidate;
        step_.said = in_.plan.reason;
        if (wish_.hold) {
            step_.said += "; the rule holds it";
            return true;
        }
        step_.next = arms;
        step_.course = course_of(known, in_.policy.judge, in_.now);
        if (known != nullptr) say(*known);
        const bool looks_worse =
            known != nullptr && std::ranges::any_of(known->columns, [](const Comparison::Column& column) {
                return log_mean(column.worse.logs) > 0;
            });
        const Rest* rest = this->rest(arms);
        const bool spent = in_.spent && looks_worse;
        if (rest != nullptr) step_.course = Course::resting;
        if (rest != nullptr || spent)
            step_.said += "; " + (spent ? "its judge.budget for today is used up" : rest->why);
        if (!spent && (rest == nullptr || !rest->suspect)) return true;
        step_.kind = Step::Kind::reverted;
        step_.hold.reset();
        return true;
    }

    const StepInput& in_;
    const ScopeWish& wish_;
    Step step_;
    std::vector<Arm> challengers_;
    std::vector<Arm> references_;  // the baseline, then each arm that won against the one before it
    std::int64_t said_ = -1;       // time of the last pair of the comparison in step_.said
};

}  // namespace

std::string_view name_of(Course course) {
    constexpr std::string_view kNames[] = {"none", "dense", "sparse", "resting", "watched"};
    return kNames[static_cast<std::size_t>(course)];
}

std::string Arm::name() const {
    return fmt::format("{}{}", name_of(scope), strict == true ? " strict" : "");
}

std::string Arm::word() const {
    return is_default ? "default" : std::string(name_of(scope));
}

std::optional<Arm> arm_named(std::string_view name) {
    constexpr std::string_view kStrict = " strict";
    const bool strict = name.ends_with(kStrict);
    if (strict) name.remove_suffix(kStrict.size());
    const auto scope = scope_named(name);
    if (!scope) return {};
    return Arm{*scope, false, strict ? std::optional(true) : std::nullopt};
}

bool searches(const Workqueue& target, const Policy& policy) {
    const ScopeWish* wish = wish_for(target, policy);
    return wish != nullptr && wish->kind == ScopeWish::Kind::automatic;
}

Arm arm_of(const Planned& plan, Scope scope) {
    return {scope, false, plan.strict};
}

Arm baseline_arm(const Workqueue& target, const Planned& plan) {
    return {plan.now.value_or(Scope::cache), target.scope.word == "default",
            plan.strict ? target.strict : std::nullopt};
}

// If only the strictness is to change, the word stays, also if it is "default".
Arm planned_arm(const Workqueue& target, const Planned& plan) {
    if (!plan.planned || plan.planned == plan.now) {
        Arm arm = baseline_arm(target, plan);
        arm.strict = plan.strict;
        return arm;
    }
    return arm_of(plan, *plan.planned);
}

std::vector<Arm> candidates_of(const StepInput& input) {
    return Search(input).challengers();
}

// A regressed comparison goes on after retry_after, with its earlier evidence.
Course course_of(const LedgerEntry* entry, const Judging& judging, std::int64_t now) {
    if (entry == nullptr) return Course::dense;
    switch (entry->judgement) {
        case Judgement::improved:
            return Course::watched;
        case Judgement::regressed: {
            // If the time is in the future, the clock was wrong when it was written.
            const bool rests = entry->decided <= now && now - entry->decided < judging.retry_after.count();
            return rests ? Course::resting : Course::sparse;
        }
        case Judgement::undecided:
            break;
    }
    return pairs_of(*entry) < judging.settings.max_pairs ? Course::dense : Course::sparse;
}

std::string text_of(const LedgerEntry& entry) {
    const std::string out =
        fmt::format("{} against {}: {}", entry.key.candidate, entry.key.reference, name_of(entry.judgement));
    const std::uint64_t pairs = pairs_of(entry);
    if (pairs == 0) return entry.alarms > 0 ? out + " (taken back by the watch)" : out;
    const Standing standing = standing_of(Comparison(entry.columns).decide({}), entry.columns);
    return fmt::format("{}, {} {}, {}", out, standing.counter, effect_text(standing.effect),
                       plural(pairs, "pair"));
}

Step next_step(const StepInput& input) {
    return Search(input).step();
}

// ---- notes

const Notes& OrderBook::of(const std::string& name) const {
    static const Notes none;
    const Notes* found = find_in(notes_, name);
    return found == nullptr ? none : *found;
}

const Rest* OrderBook::rest_of(const std::string& name, const Arms& arms) const {
    return find_in(of(name).aside.rests, arms.key());
}

void OrderBook::put_off(const std::string& name, const Arms& arms, const std::string& why,
                        std::uint64_t now) {
    constexpr unsigned kMostDoublings = 11;  // of 10 s: 5.7 hours
    Notes::Aside& aside = of(name).aside;
    const std::uint64_t time = (10 * kSecond) << std::min(aside.failures++, kMostDoublings);
    aside.rests[arms.key()] = {now + time, "its last slot gave no result: " + why};
}

double OrderBook::lost(const std::string& name, std::int64_t wall) const {
    return of(name).lost.on(wall / 86'400);
}

double OrderBook::lost(std::int64_t wall) const {
    double out = 0;
    for (const auto& [name, notes] : notes_) out += lost(name, wall);
    return out;
}

void OrderBook::see(const std::map<std::string, double>& rates, std::uint64_t last, std::uint64_t now) {
    for (auto& [name, notes] : notes_)
        if (notes.load.rate_at <= last) notes.load.rate = 0;
    for (const auto& [name, rate] : rates) {
        auto& load = notes_[name].load;
        if (load.rate_at > last) continue;
        load.rate = rate;
        load.rate_at = now;
    }
}

void OrderBook::policy_changed() {
    for (auto& [name, notes] : notes_) notes.aside = {};
}

}  // namespace wq
