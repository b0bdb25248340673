// SPDX-License-Identifier: LGPL-2.1-or-later
// `check` and `cat-config`.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "evidence/json_values.h"
#include "policy/load_policy.h"
#include "policy/policy_text.h"
#include "policy/rule_warnings.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const PolicyErrors& errors) {
    const auto place = [](unsigned number) { return number == 0 ? Json() : Json(number); };
    Json out = Json::array();
    for (const PolicyError& error : errors)
        out.push_back({{"file", error.file},
                       {"line", place(error.line)},
                       {"column", place(error.column)},
                       {"message", error.message}});
    return out;
}

// Returns "3 rules, 2 host tables of which 1 matches here": the contents of FILE, and how many host tables
// match.
std::string contents(const Policy& policy, const std::string& file) {
    const auto is_here = [&](const auto& part) { return part.origin.file == file; };
    const auto matches = [&](const HostMatch& host) { return is_here(host) && host.matches(); };
    const auto hosts = std::ranges::count_if(policy.hosts, is_here);
    std::string rules = plural(std::ranges::count_if(policy.rules, is_here), "rule");
    if (hosts == 0) return rules;
    const auto matching = std::ranges::count_if(policy.hosts, matches);
    return fmt::format("{}, {} of which {} match{} here", rules, plural(hosts, "host table"), matching,
                       matching == 1 ? "es" : "");
}

}  // namespace

int check(const Options& options, const std::vector<std::string>& files) {
    const auto names = files.empty() ? policy_files(options.root) : files;
    PolicyErrors warnings;
    std::vector<std::string> notes;
    auto policy = load_policy(names, facts_of(options), &warnings);
    if (policy) {
        policy->expire(wall_clock());
        for (const Origin& rule : policy->expired_rules())
            warnings.push_back({rule.file, rule.line, 1, "this rule has expired", ""});
        for (PolicyError& warning : warnings_of(*policy)) warnings.push_back(std::move(warning));
        if (files.empty()) notes = notes_about(options, *policy);
    }
    const PolicyErrors errors = policy ? PolicyErrors{} : policy.error();
    const int code = policy ? kOk : kFailure;
    if (options.json) {
        const Json report = {{"ok", errors.empty()},
                             {"files", names},
                             {"errors", to_json(errors)},
                             {"warnings", to_json(warnings)},
                             {"notes", notes}};
        fmt::print("{}\n", json_text(report, 2));
        return code;
    }
    for (const PolicyError& error : errors) say(error.underlined() + "\n");
    for (PolicyError& warning : warnings) {
        warning.message.insert(0, "warning: ");
        say(warning.underlined() + "\n");
    }
    for (const std::string& note : notes) say(note + "\n");
    if (policy && names.empty()) {
        const auto installed = load_installed_policy(options.root, {}, facts_of(options));
        fmt::print("no policy file: {}\n", installed && installed->rules.empty()
                                               ? "the main file is masked, and every workqueue is left alone"
                                               : "the built-in policy applies (every workqueue, scope auto)");
    }
    if (policy)
        for (const std::string& file : names) fmt::print("{}: ok, {}\n", file, contents(*policy, file));
    return code;
}

int cat_config(const Options& options) {
    const auto files = options.config ? std::vector{*options.config} : policy_files(options.root);
    const auto policy = load_installed_policy(options.root, options.config, facts_of(options));
    if (!policy) {
        print_errors(policy.error());
        return kFailure;
    }
    if (options.json)
        fmt::print("{}\n", json_text(policy_json(*policy, files), 2));
    else
        fmt::print("{}", policy_toml(*policy, files));
    return kOk;
}

}  // namespace wq::ctl
