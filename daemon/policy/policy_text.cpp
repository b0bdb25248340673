// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/policy_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "policy/load_policy.h"
#include "policy/rule_warnings.h"
#include "policy/settings.h"

namespace wq {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxComment = 1000;  // bytes; a line of a policy has at most 4096

std::string dotted(const Row<Policy>& setting) {
    return fmt::format("{}.{}", setting.table, setting.key);
}

std::string origin_of(const Policy& policy, const Row<Policy>& setting) {
    const auto found = policy.origins.find(dotted(setting));
    return found == policy.origins.end() ? "built-in" : found->second.text();
}

// Returns "KEY = VALUE  # COMMENT"; an array with several elements has one line per element.
std::string key_lines(const std::string& key, const Json& value, const std::string& comment) {
    const std::string end = comment.empty() ? "\n" : "  " + toml_comment(comment) + "\n";
    if (!value.is_array() || value.size() < 2) return fmt::format("{} = {}{}", key, toml_text(value), end);
    std::string out = fmt::format("{} = [{}", key, end);
    for (const Json& element : value) out += fmt::format("    {},\n", toml_text(element));
    return out + "]\n";
}

Json rule_json(const WorkqueueRule& rule) {
    Json out;
    for (const auto& row : rule_keys())
        if (Json value = row.value(rule); !value.is_null()) out[row.key] = std::move(value);
    return out;
}

std::string heading(const Policy& policy, const std::vector<std::string>& files) {
    std::string out =
        "# wq-tuned's policy on this host, merged. Each value has the place that it came from.\n";
    out +=
        files.empty() ? "# There are no policy files.\n" : "# Files, in the order in which they are read:\n";
    for (const std::string& file : files) out += toml_comment("  " + file) + "\n";
    out += "# Hash, as in the metrics: " + policy_hash(policy) + "\n";
    if (policy.hosts.empty()) return out + "# There are no host tables.\n";
    out += "# Host tables, in the order in which they are merged:\n";
    for (const std::string& line : host_lines(policy)) out += toml_comment("  " + line) + "\n";
    return out;
}

Json values_json(const Policy& policy) {
    Json out = Json::object();
    for (const Row<Policy>& setting : settings())
        if (Json value = setting.value(policy); !value.is_null())
            out[setting.table][setting.key] = std::move(value);
    out["workqueue"] = Json::array();
    for (const WorkqueueRule& rule : policy.rules) out["workqueue"].push_back(rule_json(rule));
    return out;
}

Json origins_json(const Policy& policy) {
    Json out = Json::object();
    for (const Row<Policy>& setting : settings())
        if (!setting.value(policy).is_null()) out[dotted(setting)] = origin_of(policy, setting);
    out["workqueue"] = Json::array();
    for (const WorkqueueRule& rule : policy.rules) out["workqueue"].push_back(rule.origin.text());
    return out;
}

}  // namespace

// JSON strings are valid TOML strings, except for DEL, which TOML requires to be escaped.
std::string toml_text(const Json& value) {
    if (value.is_structured()) {
        std::vector<std::string> parts;
        for (const auto& [key, one] : value.items())
            parts.push_back((value.is_object() ? key + " = " : "") + toml_text(one));
        return fmt::format(fmt::runtime(value.is_object() ? "{{ {} }}" : "[{}]"), fmt::join(parts, ", "));
    }
    std::string text = value.dump();
    for (std::size_t at = text.find('\x7f'); at != std::string::npos; at = text.find('\x7f', at))
        text.replace(at, 1, "\\u007f");
    return text;
}

std::string toml_comment(const std::string& text) {
    return "# " + printable(text.substr(0, kMaxComment));
}

Json glob_or_null(const std::string& text) {
    return text.empty() || printable(text) != text ? Json() : Json(glob_of(text));
}

std::string policy_toml(const Policy& policy, const std::vector<std::string>& files) {
    std::string out = heading(policy, files);
    std::string table;
    for (const Row<Policy>& setting : settings()) {
        const Json value = setting.value(policy);
        if (value.is_null()) continue;
        if (setting.table != table) out += fmt::format("\n[{}]\n", setting.table);
        table = setting.table;
        out += key_lines(setting.key, value, origin_of(policy, setting));
    }
    if (policy.rules.empty()) out += "\n# No rule: every workqueue is left alone.\n";
    for (const WorkqueueRule& rule : policy.rules) {
        out += fmt::format("\n[[workqueue]]  {}{}\n", toml_comment(rule.origin.text()),
                           rule.expired ? "; it has expired" : "");
        const Json values = rule_json(rule);
        for (const auto& [key, value] : values.items()) out += key_lines(key, value, "");
    }
    return out;
}

Json policy_json(const Policy& policy, const std::vector<std::string>& files) {
    return {{"files", files},
            {"hosts", hosts_json(policy)},
            {"hash", policy_hash(policy)},
            {"policy", values_json(policy)},
            {"origins", origins_json(policy)}};
}

std::string policy_hash(const Policy& policy) {
    return fmt::format("{:016x}", hash_of(values_json(policy).dump()));
}

std::string sources_hash(const std::vector<std::string>& files) {
    std::string all;
    for (const std::string& file : files) {
        const auto text = read_policy_file(file);
        if (!text) return "";
        all += *text;
    }
    return fmt::format("{:016x}", hash_of(all));
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
