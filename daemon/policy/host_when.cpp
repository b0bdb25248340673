// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/host_when.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/text.h"
#include "policy/quantity.h"

namespace wq {
namespace {

std::string not_known(const std::string& key) {
    return key + " is not known here";
}

// A string fact as a list for glob matching; empty if not known.
std::vector<std::string> one(const std::string& fact) {
    if (fact.empty()) return {};
    return {fact};
}

std::vector<std::string> quoted(const std::vector<std::string>& words) {
    std::vector<std::string> out;
    out.reserve(words.size());
    for (const std::string& word : words) out.push_back(in_quotes(word));
    return out;
}

}  // namespace

void HostWhen::add_glob(TomlTable& when, const std::string& key,
                        std::vector<std::string> (*fact)(const HostFacts&)) {
    const auto glob = when.string(key);
    if (!glob) return;
    conditions_.emplace_back([key, fact, glob = *glob](const HostFacts& facts, const auto&) -> std::string {
        const auto words = fact(facts);
        if (words.empty()) return not_known(key);
        const bool holds = std::ranges::any_of(
            words, [&](const std::string& word) { return ::fnmatch(glob.c_str(), word.c_str(), 0) == 0; });
        if (holds) return "";
        return fmt::format("{} is {}, not {}", key, fmt::join(quoted(words), " or "), in_quotes(glob));
    });
}

void HostWhen::add_number(TomlTable& when, const std::string& key, std::optional<unsigned> HostFacts::*fact) {
    const auto text = when.scalar(key);
    if (!text) return;
    const auto range = NumberRange::of_numbers(*text);
    if (!range) return when.refuse(key, key + " " + range.error().text);
    conditions_.emplace_back(
        [key, fact, text = *text, range = *range](const HostFacts& facts, const auto&) -> std::string {
            const auto& number = facts.*fact;
            if (!number) return not_known(key);
            return range.has({*number}) ? "" : fmt::format("{} is {}, not {}", key, *number, in_quotes(text));
        });
}

void HostWhen::add_flag(TomlTable& when, const std::string& key, std::optional<bool> HostFacts::*fact) {
    const auto wanted = when.flag(key);
    if (!wanted) return;
    conditions_.emplace_back(
        [key, fact, wanted = *wanted](const HostFacts& facts, const auto&) -> std::string {
            const auto& flag = facts.*fact;
            if (!flag) return not_known(key);
            return *flag == wanted ? "" : fmt::format("{} is {}, not {}", key, *flag, wanted);
        });
}

// Must be a string: the TOML number 6.10 would be 6.1.
void HostWhen::add_kernel(TomlTable& when) {
    const auto text = when.string("kernel");
    if (!text) return;
    const auto range = NumberRange::of_versions(*text);
    if (!range) return when.refuse("kernel", "kernel " + range.error().text);
    conditions_.emplace_back(
        [text = *text, range = *range](const HostFacts& facts, const auto&) -> std::string {
            const Numbers numbers = leading_numbers(facts.kernel);
            if (numbers.empty()) return not_known("kernel");
            if (range.has(numbers)) return "";
            return fmt::format("kernel is {}, not {}", in_quotes(facts.kernel), in_quotes(text));
        });
}

void HostWhen::add_feature(TomlTable& when) {
    std::vector<std::string_view> names;
    for (const NamedFeature& feature : kFeatures) names.push_back(feature.name);
    const auto name = when.word("has", names);
    if (!name) return;
    const auto value = std::ranges::find(kFeatures, *name, &NamedFeature::name)->value;
    conditions_.emplace_back([name = *name, value](const HostFacts& facts, const auto&) -> std::string {
        const auto has = facts.features ? facts.features().*value : std::nullopt;
        if (!has) return fmt::format("has: whether the kernel has {} is not known here", name);
        return *has ? "" : fmt::format("has: this kernel has no {}", name);
    });
}

void HostWhen::add_canary(TomlTable& when) {
    const auto text = when.scalar("canary");
    if (!text) return;
    const auto share = parse_percentage(*text);
    if (!share) return when.refuse("canary", "canary " + share.error().text);
    conditions_.emplace_back(
        [text = *text, share = *share](const HostFacts& facts, const std::string& name) -> std::string {
            if (facts.machine_id.empty()) return "canary: the machine id is not known here";
            const double position = canary_position(facts.machine_id, name);
            if (position < share || share >= 1) return "";
            return fmt::format("canary: this host is at {:.4f}%, not below {}", position * 100, text);
        });
}

HostWhen HostWhen::read(TomlTable& when) {
    HostWhen out;
    out.add_glob(when, "arch", [](const HostFacts& facts) { return one(facts.arch); });
    out.add_glob(when, "cpu_vendor", [](const HostFacts& facts) { return one(facts.cpu_vendor); });
    out.add_glob(when, "cpu_model", [](const HostFacts& facts) { return facts.cpu_models; });
    out.add_number(when, "llc_cores", &HostFacts::llc_cores);
    out.add_number(when, "cores", &HostFacts::cores);
    out.add_number(when, "numa_nodes", &HostFacts::numa_nodes);
    out.add_flag(when, "smt", &HostFacts::smt);
    out.add_kernel(when);
    out.add_glob(when, "hostname", [](const HostFacts& facts) { return one(facts.hostname); });
    out.add_flag(when, "virtual", &HostFacts::is_virtual);
    out.add_feature(when);
    out.add_canary(when);
    when.reject_unknown_keys();
    return out;
}

std::vector<std::string> HostWhen::misses(const HostFacts& facts, const std::string& name) const {
    std::vector<std::string> out;
    for (const Condition& condition : conditions_)
        if (auto why = condition(facts, name); !why.empty()) out.push_back(std::move(why));
    return out;
}

}  // namespace wq
