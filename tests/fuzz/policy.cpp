// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Policies: a main file and drop-ins, with a line "#---" between them, loaded on a host with known facts.
#include "policy/load_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "fuzz.h"
#include "policy/policy_text.h"

using wq::fuzz::folder;
using wq::fuzz::require;

static constexpr std::string_view kCut = "#---\n";
static constexpr std::size_t kMostFiles = 4;

static wq::HostFacts facts() {
    wq::HostFacts host;
    host.arch = "x86_64";
    host.cpu_vendor = "AuthenticAMD";
    host.cpu_models = {"AMD EPYC 7713 64-Core Processor"};
    host.llc_cores = 8;
    host.cores = 64;
    host.numa_nodes = 4;
    host.smt = true;
    host.kernel = "6.12.57+deb13-amd64";
    host.hostname = "web-1";
    host.machine_id = "0123456789abcdef0123456789abcdef";
    host.is_virtual = false;
    host.features = [] { return wq::KernelFeatures{true, false}; };
    return host;
}

static std::vector<std::string> write_files(std::string_view text) {
    std::vector<std::string> files;
    for (bool more = true; more && files.size() < kMostFiles;) {
        const auto cut = text.find(kCut);
        more = cut != std::string_view::npos;
        const std::string name = fmt::format("{}.toml", files.size());
        folder().write(name, std::string(text.substr(0, cut)));
        files.push_back(folder().path(name));
        text.remove_prefix(more ? cut + kCut.size() : text.size());
    }
    return files;
}

static void check_error(const wq::PolicyError& error) {
    const auto text = wq::read_policy_file(error.file);
    require(text.has_value(), "an error names a file that was read");
    require(error.line >= 1 && error.line <= std::ranges::count(*text, '\n') + 1,
            "a refused policy names a line that is there");
    require(error.column <= text->size() + 1, "its column is in the text");
    require(!error.message.empty() && wq::printable(error.message) == error.message,
            "its message can be shown");
    require(wq::printable(error.excerpt) == error.excerpt, "its excerpt can be shown");
    require(error.text().starts_with(error.file + ":"), "its text names the place");
    require(!error.underlined().empty(), "it can be underlined");
}

static void check_errors(const wq::PolicyErrors& errors, const std::vector<std::string>& files) {
    require(!errors.empty(), "what is refused has a reason");
    for (const auto& error : errors) check_error(error);
    require(std::ranges::is_sorted(errors, {},
                                   [&](const wq::PolicyError& e) {
                                       return std::tuple(std::ranges::find(files, e.file), e.line, e.column);
                                   }),
            "errors are in the order of files and lines");
}

static void check_merged(const wq::Policy& policy, const std::vector<std::string>& files) {
    const std::string toml = policy_toml(policy, files);
    folder().write("merged.toml", toml);
    const auto again = wq::load_policy({folder().path("merged.toml")});
    require(again.has_value(), "a merged policy is a policy");
    require(policy_json(policy, files)["policy"] == policy_json(*again, files)["policy"],
            "a merged policy reads as the same");
    require(policy_hash(policy) == policy_hash(*again), "a merged policy has the same hash");
    require(again->hosts.empty() && again->rules.size() == policy.rules.size(), "and the same rules");
    require(!wq::sources_hash(files).empty(), "files that were read have a hash");
    for (const auto& rule : policy.rules)
        require(rule.origin.line > 0 && std::ranges::count(files, rule.origin.file) == 1,
                "a rule has an origin");
}

FUZZ_TARGET(policy) {
    const auto files = write_files(text);
    wq::PolicyErrors warnings;
    const auto policy = wq::load_policy(files, facts, &warnings);
    if (!policy) return check_errors(policy.error(), files);
    check_merged(*policy, files);
    for (const auto& warning : warnings) check_error(warning);
}
