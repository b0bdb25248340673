// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/worth.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "evidence/verdicts.h"
#include "plan/plan.h"

namespace wq {
namespace {

using nlohmann::json;

// The arm that TARGET has outside of slots because it improved or was set first; nullptr if none.
const Arm* arm_in_force(const Target& target) {
    const auto& hold = target.step.hold;
    if (target.external || !hold || !target.step.holds(*hold)) return nullptr;
    return target.in_slot || target.now.scope.word == hold->word ? &*hold : nullptr;
}

// A follower of @default is moved with it, and an order can move a target, too.
bool is_moved(const Engine& engine, const Target& target) {
    if (target.external || (target.now.kind != Kind::unbound && target.now.kind != Kind::default_scope))
        return false;
    if (target.in_slot) return arm_in_force(target) != nullptr || target.plan.now != target.before;
    const Owned* entry = target.entry();
    if (entry != nullptr && entry->whose(target.values()).strict == Whose::ours) return true;
    // Where an order moved @default, `before` of a follower is what that holds now.
    const auto parameter = engine.targets().find(kDefaultTarget);
    const bool follows = target.now.scope.word == "default" && parameter != engine.targets().end();
    const auto& before = follows ? parameter->second.before : target.before;
    const auto& now = target.now.scope.effective;
    return before && now && *before != *now;
}

LedgerKey key_of(const Engine& engine, const Target& target, const Arm& arm) {
    Workqueue before = target.before_us();
    const Arms arms = target.step.watch.value_or(Arms{baseline_arm(before, target.plan), arm});
    return engine.keys().ledger_key(target.now, arms, false);
}

void add(AfterVerdict& sum, const AfterVerdict& more) {
    if (more.pairs == 0) return;
    sum.first = sum.pairs == 0 ? more.first : std::min(sum.first, more.first);
    sum.last = std::max(sum.last, more.last);
    sum.add(more);
}

}  // namespace

Worth worth_of(const Engine& engine, const Ledger& ledger) {
    Worth out;
    std::map<std::tuple<std::string, std::string, std::string>, AfterVerdict> sums;
    std::set<std::string> seen;  // targets of one class mostly share a comparison
    out.targets = engine.targets().size();
    for (const auto& [name, target] : engine.targets()) {
        if (!is_moved(engine, target)) continue;
        out.moved++;
        const Arm* arm = arm_in_force(target);
        const ScopeWish* wish = wish_for(target.now, engine.policy());
        if (arm == nullptr || (wish != nullptr && wish->hold)) continue;  // what is held is not compared
        const LedgerKey key = key_of(engine, target, *arm);
        if (!seen.insert(key.text()).second) continue;
        const LedgerEntry* entry = ledger.find(key);
        const auto& counters = engine.keys().measures().counters;
        for (std::size_t i = 0; i < counters.size(); i++) {
            if (counters[i].guard) continue;
            AfterVerdict& sum = sums[{key.kind, key.candidate, counters[i].name}];
            if (entry != nullptr && i < entry->after.size()) add(sum, entry->after[i]);
        }
    }
    for (const auto& [what, after] : sums)
        out.parts.push_back({std::get<0>(what), std::get<1>(what), std::get<2>(what), after});
    std::ranges::stable_sort(out.parts, std::ranges::greater{}, [](const Worth::Part& part) {
        return part.is_measured() ? std::abs(part.after.sum) / static_cast<double>(part.after.pairs) : -1;
    });
    return out;
}

json worth_json(const Engine& engine, const Ledger& ledger, const std::vector<VerdictRecord>& verdicts,
                std::int64_t now) {
    const Worth worth = worth_of(engine, ledger);
    json classes = json::array();
    for (const Worth::Part& part : worth.parts) {
        const Effect effect = mean_effect_of(part.after);
        const auto if_any = [&](std::int64_t time) {
            return part.after.pairs > 0 ? json(time) : json(nullptr);
        };
        const auto& interval = effect.interval;
        classes.push_back(
            {{"class", part.kind},
             {"scope", part.arm},
             {"counter", part.counter},
             {"effect_percent", part.is_measured() ? json(effect.percent) : json(nullptr)},
             {"interval_percent", interval ? json{interval->low, interval->high} : json(nullptr)},
             {"pairs", part.after.pairs},
             {"since", if_any(part.after.first)},
             {"until", if_any(part.after.last)}});
    }
    const std::chrono::duration<double> window = engine.policy().judge.window;
    return {{"targets", worth.targets},
            {"moved", worth.moved},
            {"classes", std::move(classes)},
            {"window_seconds", window.count()},
            {"taken_back_this_month", taken_back_in_month(verdicts, now)},
            {"lost_today_s", nullptr}};
}

}  // namespace wq
