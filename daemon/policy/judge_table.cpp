// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/judge_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "policy/quantity.h"
#include "policy/settings.h"

namespace wq {

using std::chrono::milliseconds;

void JudgeReader::read(TomlTable& table, const SourceText& text) {
    read_settings(table, "judge", policy_);
    sources_++;
    for (const char* key : {"window", "washout", "alpha", "max_pairs", "counters"})
        if (table.has(key)) settings_[key] = {key, sources_, text.error(table.place_of(key), "")};
}

JudgeReader JudgeReader::over(Policy& other) const {
    JudgeReader reader(other);
    reader.sources_ = sources_;
    reader.settings_ = settings_;
    return reader;
}

JudgeReader::Setting JudgeReader::setting(const std::string& key) const {
    const auto found = settings_.find(key);
    return found == settings_.end() ? Setting{key} : found->second;
}

// If several KEYS were set in the same last source, returns the first of them in KEYS.
JudgeReader::Setting JudgeReader::latest(std::initializer_list<const char*> keys) const {
    Setting latest;
    for (const char* key : keys)
        if (const Setting one = setting(key); latest.key.empty() || one.source > latest.source) latest = one;
    return latest;
}

std::optional<JudgeReader::Setting> JudgeReader::washout_too_long() const {
    if (policy_.judge.washout < policy_.judge.window) return std::nullopt;
    const auto said = [](const Setting& setting, milliseconds time) {
        return fmt::format("{} ({})", text_of(time), Origin{setting.place.file, setting.place.line}.text());
    };
    const Setting window = setting("window");
    const Setting washout = setting("washout");
    Setting last = latest({"washout", "window"});
    last.place.message =
        last.key == "window"
            ? "window must be more than washout, which is " + said(washout, policy_.judge.washout)
            : "washout must be less than window, which is " + said(window, policy_.judge.window);
    return last;
}

// A pair can at most double the evidence, and the first trial of two arms may not use all of alpha.
std::optional<JudgeReader::Setting> JudgeReader::too_few_pairs() const {
    const auto counters = static_cast<double>(policy_.judge.counters.size());
    const double needed = std::log2(counters / lifetime_alpha(policy_.judge.settings.alpha, 1));
    if (needed <= policy_.judge.settings.max_pairs) return std::nullopt;
    Setting last = latest({"max_pairs", "alpha", "counters"});
    last.place.message = fmt::format(
        "no trial could have a verdict: max_pairs is {}, alpha {} for {} counter{} needs at least {:.0f}",
        policy_.judge.settings.max_pairs, policy_.judge.settings.alpha, counters, counters == 1 ? "" : "s",
        std::ceil(needed));
    return last;
}

PolicyErrors JudgeReader::contradictions() const {
    std::vector<Setting> found;
    for (const auto& one : {washout_too_long(), too_few_pairs()})
        if (one) found.push_back(*one);
    std::stable_sort(found.begin(), found.end(), [](const Setting& a, const Setting& b) {
        return std::tie(a.source, a.place.line) < std::tie(b.source, b.place.line);
    });
    PolicyErrors errors;
    for (const Setting& one : found) errors.push_back(one.place);
    return errors;
}

}  // namespace wq
