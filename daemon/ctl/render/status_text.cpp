// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/status_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <set>

#include "base/text.h"
#include "ctl/render/terminal.h"
#include "evidence/json_values.h"
#include "evidence/verdicts.h"

namespace wq::ctl {

using nlohmann::json;

namespace {

// "latency 8.1% better (7 to 9.2)" for a comparison or a verdict; "" if it has no effect yet.
std::string effect_text_of(const json& about) {
    const auto effect = effect_in(about);
    return effect ? about.value("counter", "") + " " + effect_text(*effect) : "";
}

constexpr double kLeastShown = 2;      // e-value; below this, the text is "no evidence yet"
constexpr double kMostShown = 10'000;  // above this, the text is "e-value above 10000"

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
    const bool resting = text_in(trial, "course") == "resting";
    const std::string because = why.empty() || why == "its next pair is not due" ? "" : " (" + why + ")";
    return fmt::format("{}next pair {}{}", resting ? "rests" + because + ", " : "", in_time(next, now),
                       resting ? "" : because);
}

// "e-value 12 that smt is better than cache".
std::string evidence_text(const json& trial) {
    const double better = trial.value("e_improved", 1.0);
    const double worse = trial.value("e_regressed", 1.0);
    const double most = std::max(better, worse);
    const std::string candidate = text_in(trial, "candidate");
    const std::string reference = text_in(trial, "reference");
    if (most < kLeastShown) return fmt::format("{} against {}: no evidence yet", candidate, reference);
    return fmt::format(
        "e-value {} that {} is {} than {}",
        most > kMostShown ? fmt::format("above {:.0f}", kMostShown) : fmt::format("{:.0f}", most), candidate,
        better >= worse ? "better" : "worse", reference);
}

// What the comparisons of TARGETS wait for, if no slot runs and it is not known when the next one begins.
std::string what_all_wait_for(const json& targets) {
    std::set<std::string> reasons;
    for (const json& target : targets)
        if (const json trial = target.value("comparison", json(nullptr)); trial.is_object())
            reasons.insert(text_in(trial, "reason"));
    if (reasons.empty()) return "nothing to compare";
    if (reasons.contains("it takes part in one of the next slots")) return "next pair soon";
    if (reasons.contains("not busy") || reasons.contains("")) return "waiting for traffic";
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

std::string progress_text(const json& trial, std::int64_t now) {
    const std::string when = when_text(trial, now);
    return fmt::format("{}{}{}{}", text_in(trial, "course") == "watched" ? "watched: " : "",
                       evidence_text(trial), pairs_text(trial), when.empty() ? "" : "; " + when);
}

std::vector<std::pair<const char*, std::string>> contention_lines(const json& target) {
    const auto contention = contention_in(target.value("contention", json(nullptr)));
    const json trial = target.value("comparison", json(nullptr));
    if (!contention || !trial.is_object()) return {};
    const std::string reference = text_in(trial, "reference");
    const std::string candidate = text_in(trial, "candidate");
    std::vector<std::pair<const char*, std::string>> out{
        {"lock wait", lock_text(*contention, reference, candidate)}};
    if (std::string pools = pools_text(*contention, reference, candidate); !pools.empty())
        out.emplace_back("pools", std::move(pools));
    return out;
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
        if (n > 0)
            parts.push_back(fmt::format("{} {}{}", n, outcome, outcome == kOutcomes[1] ? " so far" : ""));
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

namespace {

constexpr std::size_t kMostClasses = 3;    // --json has all
constexpr std::int64_t kRecent = 172'800;  // s; a watch measures at least once a day while there is work

// "12 November", with the year if it is not that of NOW.
std::string day_text(std::int64_t time, std::int64_t now) {
    std::tm date{}, today{};
    const auto then = static_cast<std::time_t>(time), seconds = static_cast<std::time_t>(now);
    ::localtime_r(&then, &date);
    ::localtime_r(&seconds, &today);
    char out[32];
    std::strftime(out, sizeof(out), date.tm_year == today.tm_year ? "%-d %B" : "%-d %B %Y", &date);
    return out;
}

// "kcryptd-#:#-# on smt: latency 31% better (24 to 37) in windows of 2 s or more, 412 pairs since 12
// November". PART: an element of `classes` of WORTH.
std::string part_text(const json& part, const json& worth, std::int64_t now) {
    const std::string head =
        fmt::format("{} on {}: ", printable(text_in(part, "class")), text_in(part, "scope"));
    const auto pairs = part.at("pairs").get<std::uint64_t>();
    const std::string effect = effect_text_of(part);
    if (effect.empty())
        return head + fmt::format("{} not yet measured ({} of {} pairs)", text_in(part, "counter"), pairs,
                                  kLeastForMean);
    const auto since = part.at("since").get<std::int64_t>();
    const auto until = part.at("until").get<std::int64_t>();
    const std::string span = now - until < kRecent
                                 ? "since " + day_text(since, now)
                                 : fmt::format("from {} to {}", day_text(since, now), day_text(until, now));
    return head + fmt::format("{} in windows of {} s or more, {} pairs {}", effect,
                              worth.at("window_seconds").get<double>(), pairs, span);
}

std::string seconds_text(double seconds) {
    return seconds > 0 && seconds < 10 ? fmt::format("{:.2g} s", seconds)
                                       : rough_time(static_cast<std::uint64_t>(seconds));
}

}  // namespace

std::vector<std::string> worth_lines(const json& status, std::int64_t now) {
    const json worth = status.value("worth", json(nullptr));
    if (!worth.is_object()) return {};
    const auto moved = worth.at("moved").get<std::uint64_t>();
    const json& classes = worth.at("classes");
    std::string head = moved == 0 ? "no target runs on another scope than the kernel's"
                                  : fmt::format("{} of {} run{} on another scope than the kernel's", moved,
                                                plural(worth.at("targets").get<std::uint64_t>(), "target"),
                                                moved == 1 ? "s" : "");
    if (classes.size() == 1) head += ": " + part_text(classes.front(), worth, now);
    head +=
        fmt::format("; taken back this month: {}", worth.at("taken_back_this_month").get<std::uint64_t>());
    if (const json lost = worth.value("lost_today_s", json(nullptr)); lost.is_number())
        head += "; lost to comparisons today: " + seconds_text(lost.get<double>());
    std::vector<std::string> out{head};
    for (std::size_t i = 0; classes.size() > 1 && i < std::min(classes.size(), kMostClasses); i++)
        out.push_back(part_text(classes[i], worth, now));
    if (classes.size() > kMostClasses)
        out.push_back(fmt::format("and {} more", classes.size() - kMostClasses));
    return out;
}

void add_isolation(Shown& out, const json& isolation) {
    Table table({"ISOLATED BY", "CPUS", "CGROUP"});
    bool any = !isolation["partitions"].empty();
    for (const char* name : {"isolcpus", "nohz_full"}) {
        const std::string cpus = text_in(isolation, name);
        if (!cpus.empty()) table.add({name, cpus, "-"});
        any = any || !cpus.empty();
    }
    for (const json& partition : isolation["partitions"])
        table.add({text_in(partition, "type") + " partition", text_in(partition, "cpus"),
                   text_in(partition, "cgroup", "(not found)")});
    if (!any) return;
    out.add("");
    out.add(std::move(table));
    if (!isolation.value("partitions_complete", true)) out.add("There are more cgroups than were looked at.");
}

std::string verdict_text(const json& record) {
    std::string out = fmt::format("{} against {}: {}", text_in(record, "candidate"),
                                  text_in(record, "reference"), text_in(record, "verdict"));
    if (const std::string reason = text_in(record, "reason"); !reason.empty()) out += " (" + reason + ")";
    const std::string effect = effect_text_of(record);
    if (effect.empty()) return out;
    const auto contention = contention_in(record.value("contention", json(nullptr)));
    return fmt::format("{}, {} in {}{}", out, effect, plural(record.value("pairs", 0U), "pair"),
                       contention ? "; " + text_of(*contention) : "");
}

}  // namespace wq::ctl
