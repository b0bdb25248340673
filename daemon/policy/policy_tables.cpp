// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/policy_tables.h"

#include <fmt/format.h>
#include <algorithm>

#include "policy/settings.h"

namespace wq {
namespace {

constexpr std::size_t kMaxMatch = 255;  // a workqueue's name has at most 31 bytes

}  // namespace

void PolicyTables::read(TomlTable& top) {
    for (const char* name : {"daemon", "shard", "judge", "metrics", "default_scope", "default_mask"})
        if (auto table = top.table(name)) {
            const bool is_default_scope = std::string_view(name) == "default_scope";
            if (is_default_scope) policy_.default_scope_tables.emplace_back();
            read_settings(*table, name, policy_);
            for (const char* key : {"window", "washout"})
                if (table->has(key)) times_ = text_.error(table->place_of(key), "");
            if (std::string_view(name) == "default_mask") note_mask(*table, policy_.default_mask, true);
            finish(*table, name);
            if (is_default_scope) note_default_scope(*table);
        }
    read_rules(top);
}

// Stores the place of each key that was read from TABLE.
void PolicyTables::finish(TomlTable& table, const std::string& name) {
    const std::string prefix = name + ".";
    for (const std::string& key : table.known_keys())
        policy_.origins[prefix + key] = origin(table.place_of(key));
    table.reject_unknown_keys();
}

void PolicyTables::read_rules(TomlTable& top) {
    auto tables = top.tables("workqueue");
    if (tables.size() > kMaxRules) {
        top.error(tables[kMaxRules].place(), fmt::format("more than {} rules", kMaxRules));
        return;
    }
    std::vector<WorkqueueRule> rules;
    rules.reserve(tables.size());
    for (TomlTable& table : tables) rules.push_back(read_rule(table));
    policy_.rules.insert(policy_.rules.begin(), rules.begin(), rules.end());  // latest source first
}

WorkqueueRule PolicyTables::read_rule(TomlTable& table) {
    WorkqueueRule rule;
    rule.match = read_match(table);
    rule.wish = read_wish(table).value_or(ScopeWish{});
    rule.strict = table.flag("strict");
    rule.mask = read_mask(table).value_or(MaskWish{});
    note_mask(table, rule.mask, false);
    rule.expires = read_expires(table);
    rule.evidence = read_evidence(table);
    rule.origin = origin(table.place());
    table.reject_unknown_keys();
    return rule;
}

void PolicyTables::note_mask(const TomlTable& table, const MaskWish& mask, bool of_default) {
    if (table.has("cpumask"))
        masks_.push_back({mask.cpus, of_default, &text_, table.place_of_value("cpumask")});
}

void PolicyTables::note_default_scope(const TomlTable& table) {
    DefaultScopeTable& read = policy_.default_scope_tables.back();
    const char* key = table.has("scope") ? "scope" : "manage";
    read.origin = origin(table.has(key) ? table.place_of(key) : table.place());
    for (const std::string& key : table.known_keys()) read.origins[key] = origin(table.place_of(key));
    policy_.merge_default_scope();
}

std::vector<std::string> PolicyTables::read_match(TomlTable& table) {
    std::vector<std::string> out;
    if (!table.has("match"))
        table.error(table.place(), "a rule needs a match, such as match = \"kcryptd-*\"");
    for (const TomlItem& item : table.texts("match").value_or(std::vector<TomlItem>{})) {
        matches_.push_back({item.text, &text_, item.place, table.has("expires")});
        if (item.text.size() > kMaxMatch)
            table.error(item.place, fmt::format("match is longer than {} bytes", kMaxMatch));
        out.push_back(item.text);
    }
    return out;
}

namespace {

struct Home {
    std::string_view name;
    std::string_view keys;  // each with a space before and after it
};

// The keys of the tables that are not in settings(). policy_tables.cpp, load_policy.cpp and host_when.cpp
// read them; a test compares the lists.
constexpr Home kHomes[] = {
    {"in [[workqueue]]", " match scope candidates hold strict cpumask expires evidence "},
    {"in [[host]]", " name when "},
    {"in when of [[host]]",
     " arch cpu_vendor cpu_model llc_cores cores numa_nodes smt kernel hostname virtual canary has "},
    {"at the top level", " daemon shard judge metrics default_scope default_mask workqueue host "},
};

}  // namespace

std::vector<std::string> homes_of(std::string_view key) {
    std::vector<std::string> out;
    const std::string word = " " + std::string(key) + " ";
    if (key.empty() || key.find(' ') != std::string_view::npos) return out;
    for (const Setting& setting : settings())
        if (key == setting.key) out.push_back("in [" + std::string(setting.table) + "]");
    for (const Home& home : kHomes)
        if (home.keys.find(word) != std::string_view::npos) out.emplace_back(home.name);
    return out;
}

namespace {

std::string named(const CpuSet& cpus) {
    return fmt::format("CPU{} {}", cpus.count() == 1 ? "" : "s", cpus.list());
}

std::string why_refused(const CpuSet& mask, const HostCpus& cpus) {
    if (const CpuSet missing = mask - cpus.possible; !missing.empty())
        return fmt::format("cpumask has {}, which this host does not have ({})", named(missing),
                           cpus.possible.list());
    if (const CpuSet isolated = mask & cpus.isolated; !isolated.empty())
        return fmt::format("cpumask has isolated {} (isolcpus=, nohz_full=)", named(isolated));
    return "";
}

}  // namespace

void add_masks(std::vector<PlacedMask>& masks, const std::vector<PlacedMask>& later) {
    if (std::ranges::any_of(later, &PlacedMask::of_default))
        std::erase_if(masks, [](const PlacedMask& mask) { return mask.of_default; });
    masks.insert(masks.end(), later.begin(), later.end());
}

bool names_cpus(const std::vector<PlacedMask>& masks) {
    return std::ranges::any_of(masks, [](const PlacedMask& mask) { return !mask.cpus.empty(); });
}

PolicyErrors errors_about(const std::vector<PlacedMask>& masks, const HostCpus& cpus) {
    PolicyErrors out;
    if (cpus.possible.empty()) return out;
    for (const PlacedMask& mask : masks)
        if (const std::string why = why_refused(mask.cpus, cpus); !why.empty())
            out.push_back(mask.text->error(mask.place, why));
    return out;
}

}  // namespace wq
