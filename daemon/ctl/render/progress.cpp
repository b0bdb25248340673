// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/text.h"
#include "ctl/render/host_text.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

constexpr double kLeastOdds = 2;      // below this, the text is "no evidence yet"
constexpr double kMostOdds = 10'000;  // above this, the text is "more than 10000 to 1"

// "in 4 min", "now".
std::string in_time(const json& when, std::int64_t now) {
    const auto left = when.get<std::int64_t>() - now;
    return left <= 0 ? "now" : "in " + rough_time(static_cast<std::uint64_t>(left));
}

// ", latency 3.1% better in 23 of 64 pairs"; "" before the first pair.
std::string pairs_text(const json& trial) {
    const std::string effect = effect_text_of(trial);
    if (effect.empty()) return "";
    const auto pairs = trial.value("pairs", 0U);
    const std::string of =
        text_in(trial, "course") == "dense" ? fmt::format(" of {}", trial.value("max_pairs", 0U)) : "";
    return fmt::format(", {} in {}{} pair{}", effect, pairs, of, pairs == 1 && of.empty() ? "" : "s");
}

// When the next pair comes, and why it does not come now.
std::string when_text(const json& trial, std::int64_t now) {
    if (text_in(trial, "phase") == "measuring") return "a pair is being measured";
    const json next = trial.value("next_pair", json(nullptr));
    const std::string why = text_in(trial, "reason");
    if (!next.is_number_integer()) return why.empty() ? "" : "waits: " + why;
    if (text_in(trial, "course") != "resting") return "next pair " + in_time(next, now);
    return fmt::format("rests{}, next pair {}", why.empty() ? "" : " (" + why + ")", in_time(next, now));
}

// What the comparisons of TARGETS wait for, if no slot runs and it is not known when the next one begins.
std::string what_all_wait_for(const json& targets) {
    std::set<std::string> reasons;
    for (const json& target : targets)
        if (const json trial = target.value("comparison", json(nullptr)); trial.is_object())
            reasons.insert(text_in(trial, "reason"));
    if (reasons.empty()) return "nothing to compare";
    // These end with traffic, or when the pair of another target ends.
    for (const char* passing : {"not busy", "it is another target's turn", ""})
        if (reasons.contains(passing)) return "waiting for traffic";
    return reasons.size() == 1 ? "no pair now: " + *reasons.begin() : "no pair now, for several reasons";
}

// When any target of STATUS has its next pair.
std::string when_any_text(const json& status, std::int64_t now) {
    const json& experiments = status.at("daemon").at("experiments");
    if (const auto measuring = experiments.value("measuring", 0U); measuring > 0)
        return fmt::format("measuring {} now", measuring);
    if (const std::string why = text_in(experiments, "reason"); !why.empty()) return "no pair now: " + why;
    const json next = experiments.value("next_pair", json(nullptr));
    return next.is_number_integer() ? "next pair " + in_time(next, now)
                                    : what_all_wait_for(status.at("targets"));
}

}  // namespace

std::string text_in(const json& object, const char* key, const char* otherwise) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::string odds_text(const json& trial) {
    const double better = trial.value("e_improved", 1.0);
    const double worse = trial.value("e_regressed", 1.0);
    const double odds = std::max(better, worse);
    const std::string candidate = text_in(trial, "candidate");
    const std::string reference = text_in(trial, "reference");
    if (odds < kLeastOdds) return fmt::format("{} against {}: no evidence yet", candidate, reference);
    return fmt::format(
        "{} to 1 that {} is {} than {}",
        odds > kMostOdds ? fmt::format("more than {:.0f}", kMostOdds) : fmt::format("{:.0f}", odds),
        candidate, better >= worse ? "better" : "worse", reference);
}

std::string progress_text(const json& trial, std::int64_t now) {
    const std::string when = when_text(trial, now);
    return fmt::format("{}{}{}{}", text_in(trial, "course") == "watched" ? "watched: " : "", odds_text(trial),
                       pairs_text(trial), when.empty() ? "" : "; " + when);
}

std::string comparisons_text(const json& status, std::int64_t now) {
    constexpr std::array kOutcomes = {"improved", "undecided", "regressed"};
    const json experiments = status.at("daemon").value("experiments", json(nullptr));
    const json& targets = status.at("targets");
    if (!experiments.is_object()) return "";
    std::vector<std::string> parts;
    std::ptrdiff_t compared = 0;
    for (const char* outcome : kOutcomes) {
        const auto n =
            std::ranges::count_if(targets, [&](const json& t) { return text_in(t, "outcome") == outcome; });
        if (n > 0) parts.push_back(fmt::format("{} {}", n, outcome));
        compared += n;
    }
    // The output line above this one says why nothing is written.
    const bool observing = text_in(status.at("daemon"), "state") == "observing";
    if (observing && compared == 0) return "";
    const std::string came_to =
        compared == 0 ? "nothing compared yet" : fmt::format("{}", fmt::join(parts, ", "));
    return fmt::format("{} of {}: {}; {}", compared, plural(targets.size(), "target"), came_to,
                       observing ? "no pair now" : when_any_text(status, now));
}

}  // namespace wq::ctl
