// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/policy_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/hash.h"
#include "base/text.h"
#include "policy/judge_table.h"
#include "policy/quantity.h"
#include "policy/source_text.h"

namespace wq {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxComment = 1000;  // bytes; a line of a policy has at most 4096

// One value of the policy: TABLE.KEY.
struct Setting {
    const char* table;
    const char* key;
    Json value;
};

// A share as a percentage that reads as just that share: in as few decimals as that takes.
std::string percentage(double share) {
    const auto reads_back = [&](const std::string& text) {
        const auto read = parse_percentage(text);
        return read && *read == share;
    };
    const double percent = share * 100;
    for (int decimals = 0; decimals <= 17; decimals++)
        if (auto text = fmt::format("{:.{}f}%", percent, decimals); reads_back(text)) return text;
    for (const double near : {percent, std::nextafter(percent, 0.0), std::nextafter(percent, 101.0)})
        if (auto text = fmt::format("{}%", near); reads_back(text)) return text;
    return fmt::format("{}%", percent);
}

std::string clock_text(const Hours& hours) {
    return fmt::format("{:02}:{:02}-{:02}:{:02}", hours.begin / 60, hours.begin % 60, hours.end / 60,
                       hours.end % 60);
}

Json counter_json(const JudgedCounter& counter) {
    if (counter.higher_is_better == counter_higher_is_better(counter.name)) return counter.name;
    return {{"counter", counter.name}, {"higher", counter.higher_is_better ? "better" : "worse"}};
}

std::vector<Setting> settings_of(const Policy& policy) {
    const Judging& judge = policy.judge;
    Json counters = Json::array();
    for (const JudgedCounter& counter : judge.counters) counters.push_back(counter_json(counter));
    return {{"daemon", "mode", name_of(policy.mode)},
            {"daemon", "on_exit", policy.keep_on_exit ? "keep" : "restore"},
            {"daemon", "apply_unjudged", policy.apply_unjudged},
            {"daemon", "keep", name_of(policy.keep)},
            {"shard", "size", policy.shard_size},
            {"judge", "alpha", judge.settings.alpha},
            {"judge", "tolerance", percentage(judge.settings.tolerance)},
            {"judge", "window", text_of(judge.window)},
            {"judge", "washout", text_of(judge.washout)},
            {"judge", "max_pairs", judge.settings.max_pairs},
            {"judge", "min_items", judge.settings.min_items},
            {"judge", "counters", std::move(counters)},
            {"judge", "retry_after", text_of(judge.retry_after)},
            {"judge", "jitter", text_of(judge.jitter)},
            {"judge", "hours", clock_text(judge.hours)},
            {"default_scope", "manage", policy.default_scope.manage},
            {"default_scope", "scope", policy.default_scope.wish.text()},
            {"metrics", "textfile", policy.metrics.textfile}};
}

Json rule_json(const WorkqueueRule& rule) {
    Json out = {{"match", rule.match}, {"scope", rule.wish.text()}};
    if (rule.strict) out["strict"] = *rule.strict;
    return out;
}

std::string dotted(const Setting& setting) {
    return fmt::format("{}.{}", setting.table, setting.key);
}

Origin origin_of(const Policy& policy, const Setting& setting) {
    const auto found = policy.origins.find(dotted(setting));
    return found == policy.origins.end() ? Origin{} : found->second;
}

std::string comment(const Origin& origin) {
    return toml_comment(origin.text());
}

// "KEY = VALUE  # FILE:LINE"; an array of several has a line for each.
std::string key_lines(const std::string& key, const Json& value, const std::string& comment) {
    if (!value.is_array() || value.size() == 1)
        return fmt::format("{} = {}  {}\n", key,
                           value.is_array() ? "[" + toml_text(value[0]) + "]" : toml_text(value), comment);
    std::string out = fmt::format("{} = [  {}\n", key, comment);
    for (const Json& element : value) out += fmt::format("    {},\n", toml_text(element));
    return out + "]\n";
}

std::string rule_lines(const WorkqueueRule& rule) {
    std::string out = fmt::format("\n[[workqueue]]  {}\n", comment(rule.origin));
    const Json values = rule_json(rule);
    for (const auto& [key, value] : values.items()) out += fmt::format("{} = {}\n", key, toml_text(value));
    return out;
}

std::string heading(const Policy& policy, const std::vector<std::string>& files) {
    std::string out =
        "# wq-tuned's policy on this host, merged. Each value has the place that it came from.\n";
    out +=
        files.empty() ? "# There are no policy files.\n" : "# Files, in the order in which they are read:\n";
    for (const std::string& file : files) out += toml_comment("  " + file) + "\n";
    out += "# Hash, as in its metrics: " + policy_hash(policy) + "\n";
    if (policy.hosts.empty()) return out + "# There are no host tables.\n";
    out += "# Host tables, in the order in which they are merged:\n";
    for (const std::string& line : host_lines(policy)) out += toml_comment("  " + line) + "\n";
    return out;
}

}  // namespace

// JSON's strings are TOML's, but for DEL, which TOML has with an escape only.
std::string toml_text(const Json& value) {
    if (value.is_object()) {
        std::vector<std::string> parts;
        for (const auto& [key, one] : value.items()) parts.push_back(key + " = " + toml_text(one));
        return fmt::format("{{ {} }}", fmt::join(parts, ", "));
    }
    std::string text = value.dump();
    for (std::size_t at = text.find('\x7f'); at != std::string::npos; at = text.find('\x7f', at))
        text.replace(at, 1, "\\u007f");
    return text;
}

std::string toml_comment(const std::string& text) {
    return "# " + printable(text.substr(0, kMaxComment));
}

std::string policy_toml(const Policy& policy, const std::vector<std::string>& files) {
    std::string out = heading(policy, files);
    std::string table;
    for (const Setting& setting : settings_of(policy)) {
        if (setting.table != table) out += fmt::format("\n[{}]\n", setting.table);
        table = setting.table;
        out += key_lines(setting.key, setting.value, comment(origin_of(policy, setting)));
    }
    if (policy.rules.empty()) out += "\n# No rule: every workqueue is left alone.\n";
    for (const WorkqueueRule& rule : policy.rules) out += rule_lines(rule);
    return out;
}

namespace {

std::string hash(const std::string& text) {
    return fmt::format("{:016x}", hash_of(text));
}

Json values_json(const Policy& policy) {
    Json out = Json::object();
    for (const Setting& setting : settings_of(policy)) out[setting.table][setting.key] = setting.value;
    out["workqueue"] = Json::array();
    for (const WorkqueueRule& rule : policy.rules) out["workqueue"].push_back(rule_json(rule));
    return out;
}

Json origins_json(const Policy& policy) {
    Json out = Json::object();
    for (const Setting& setting : settings_of(policy))
        out[dotted(setting)] = origin_of(policy, setting).text();
    out["workqueue"] = Json::array();
    for (const WorkqueueRule& rule : policy.rules) out["workqueue"].push_back(rule.origin.text());
    return out;
}

}  // namespace

Json policy_json(const Policy& policy, const std::vector<std::string>& files) {
    return {{"files", files},
            {"hosts", hosts_json(policy)},
            {"hash", policy_hash(policy)},
            {"policy", values_json(policy)},
            {"origins", origins_json(policy)}};
}

std::string policy_hash(const Policy& policy) {
    return hash(values_json(policy).dump());
}

std::string sources_hash(const std::vector<std::string>& files) {
    std::string all;
    for (const std::string& file : files) {
        const auto text = read_policy_file(file);
        if (!text) return "";
        all += text->text();
    }
    return hash(all);
}

Json hosts_json(const Policy& policy) {
    Json out = Json::array();
    for (const HostMatch& host : policy.hosts)
        out.push_back({{"name", host.name},
                       {"origin", host.origin.text()},
                       {"matches", host.matches()},
                       {"why", host.misses}});
    return out;
}

std::vector<std::string> host_lines(const Policy& policy) {
    std::vector<std::string> out;
    for (const HostMatch& host : policy.hosts)
        out.push_back(printable(fmt::format(
            "{} ({}): {}", host.name, host.origin.text(),
            host.matches() ? "matches" : fmt::format("does not match: {}", fmt::join(host.misses, "; ")))));
    return out;
}

}  // namespace wq
