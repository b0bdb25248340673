// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/order_book.h"

#include <algorithm>

#include "base/clock.h"

namespace wq {

const Notes& OrderBook::of(const std::string& name) const {
    static const Notes none;
    const auto found = notes_.find(name);
    return found == notes_.end() ? none : found->second;
}

const Rest* OrderBook::rest_of(const std::string& name, const Arms& arms) const {
    const auto& rests = of(name).aside.rests;
    const auto rest = rests.find(arms.key());
    return rest == rests.end() ? nullptr : &rest->second;
}

void OrderBook::put_off(const std::string& name, const std::string& why, std::uint64_t now) {
    constexpr unsigned kMostDoublings = 11;  // of 10 s: 5.7 hours
    Notes::Aside& aside = of(name).aside;
    aside.not_before = now + ((10 * kSecond) << std::min(aside.failures, kMostDoublings));
    aside.failures++;
    aside.why = why;
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
