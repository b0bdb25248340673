// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Two passes. The first reads and checks every table of every file, each host table separately. If there is
// no error, the second reads the matching host tables again and applies them on top of the rest.
#include "policy/load_policy.h"

#include <fmt/format.h>
#include <algorithm>
#include <list>
#include <tuple>

#include "base/clock.h"
#include "base/text.h"
#include "policy/host_when.h"
#include "policy/policy_tables.h"
#include "policy/quantity.h"

namespace wq {
namespace {

constexpr std::size_t kMaxHostName = 255;

// Keys are read in the code's order; sort errors by their place in the file.
void sort_by_place(PolicyErrors& errors) {
    std::stable_sort(errors.begin(), errors.end(), [](const PolicyError& a, const PolicyError& b) {
        return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
}

class Loader {
  public:
    void read(const std::string& file) {
        auto text = read_policy_file(file);
        if (text)
            read(sources_.emplace_back(Source{std::move(*text), {}}));
        else
            errors_.insert(errors_.end(), text.error().begin(), text.error().end());
    }

    // Warnings about the rules of all files and of each host table.
    [[nodiscard]] PolicyErrors warnings() const {
        PolicyErrors out = warnings_about(matches_);
        for (const Host& host : hosts_)
            for (PolicyError& warning : warnings_about(host.matches)) out.push_back(std::move(warning));
        std::ranges::stable_sort(out, {}, [&](const PolicyError& warning) {
            const auto source =
                std::ranges::find(sources_, warning.file, [](const Source& s) { return s.text.file(); });
            return std::tuple(std::distance(sources_.begin(), source), warning.line, warning.column);
        });
        return out;
    }

    tl::expected<Policy, PolicyErrors> merge(const FactsSource& facts) {
        if (errors_.empty()) errors_ = contradictions();
        if (!errors_.empty()) return tl::unexpected(errors_);
        const HostFacts host = facts && needs_facts() ? facts() : HostFacts{};
        if (!hosts_.empty()) merge_hosts(host);
        if (names_cpus(masks_) && host.cpus)
            if (auto errors = errors_about(masks_, host.cpus()); !errors.empty())
                return tl::unexpected(errors);
        if (auto errors = contradictions(policy_, times_); !errors.empty()) return tl::unexpected(errors);
        return std::move(policy_);
    }

  private:
    // Must not move, because its tables point to it.
    struct Source {
        SourceText text;
        PolicyErrors errors;
    };
    struct Host {
        const SourceText& text;
        TomlTable table;
        std::string name;
        Origin origin;
        HostWhen when;
        std::vector<PlacedMatch> matches;
        std::optional<PolicyError> times;
    };

    void read(Source& source) {
        if (auto top = TomlTable::parse(source.text, source.errors)) {
            PolicyTables tables(source.text, policy_);
            tables.read(*top);
            matches_.insert(matches_.begin(), tables.matches().begin(), tables.matches().end());
            add_masks(masks_, tables.masks());
            if (tables.times()) times_ = tables.times();
            read_hosts(*top, source.text);
            top->reject_unknown_keys();
        }
        sort_by_place(source.errors);
        errors_.insert(errors_.end(), source.errors.begin(), source.errors.end());
        source.errors.clear();
    }

    void read_hosts(TomlTable& top, const SourceText& text) {
        auto tables = top.tables("host");
        if (tables.size() > kMaxHosts)
            return top.error(tables[kMaxHosts].place(), fmt::format("more than {} host tables", kMaxHosts));
        for (TomlTable& table : tables) read_host(table, text);
    }

    void read_host(TomlTable& table, const SourceText& text) {
        Host host{text, table, read_name(table), {text.file(), table.place().line}, {}, {}, {}};
        if (!host.name.empty() && !names_.emplace(host.name, host.origin).second)
            table.error(table.place_of("name"), fmt::format("host {} already exists ({})",
                                                            in_quotes(host.name), names_[host.name].text()));
        if (auto when = table.table("when")) host.when = HostWhen::read(*when);
        Policy aside;
        PolicyTables tables(text, aside);
        tables.read(table);
        host.matches = tables.matches();
        host.times = tables.times();
        table.reject_unknown_keys();
        hosts_.push_back(std::move(host));
    }

    // Reading a topology is expensive.
    [[nodiscard]] bool needs_facts() const { return !hosts_.empty() || names_cpus(masks_); }

    static std::string read_name(TomlTable& table) {
        const auto name = table.string("name");
        if (!table.has("name"))
            table.error(table.place(), "a host table needs a name, such as name = \"epyc\"");
        if (name && name->size() > kMaxHostName)
            table.error(table.place_of("name"), fmt::format("name is longer than {} bytes", kMaxHostName));
        return name.value_or("");
    }

    // Inconsistent values outside of host tables, or in one host table combined with them. Every host
    // reports such an error, so it is found before the rollout.
    PolicyErrors contradictions() {
        PolicyErrors errors = contradictions(policy_, times_);
        if (!errors.empty()) return errors;
        for (Host& host : hosts_) {
            if (!host.times) continue;
            Policy merged = policy_;
            PolicyTables(host.text, merged).read(host.table);
            for (PolicyError& error : contradictions(merged, host.times)) errors.push_back(std::move(error));
        }
        return errors;
    }

    // PLACE: of the last window or washout of POLICY.
    static PolicyErrors contradictions(const Policy& policy, const std::optional<PolicyError>& place) {
        if (!place || policy.judge.washout < policy.judge.window) return {};
        const auto said = [&](const char* key, std::chrono::milliseconds time) {
            const auto origin = policy.origins.find(key);
            return fmt::format("{} ({})", text_of(time),
                               origin == policy.origins.end() ? Origin{}.text() : origin->second.text());
        };
        PolicyError out = *place;
        out.message = fmt::format("washout must be less than window: it is {}, and window is {}",
                                  said("judge.washout", policy.judge.washout),
                                  said("judge.window", policy.judge.window));
        return {out};
    }

    void merge_hosts(const HostFacts& facts) {
        for (Host& host : hosts_) {
            HostMatch match{host.name, host.origin, host.when.misses(facts, host.name)};
            if (match.matches()) {
                PolicyTables tables(host.text, policy_);
                tables.read(host.table);
                add_masks(masks_, tables.masks());
                if (tables.times()) times_ = tables.times();
            }
            policy_.hosts.push_back(std::move(match));
        }
    }

    Policy policy_;
    std::list<Source> sources_;
    std::vector<PlacedMatch> matches_;  // patterns outside of host tables, in the order of trying
    std::vector<PlacedMask> masks_;     // masks in force, with those of matching host tables
    std::optional<PolicyError> times_;  // the place of the last window or washout in force
    std::vector<Host> hosts_;
    std::map<std::string, Origin> names_;
    PolicyErrors errors_;
};

}  // namespace

tl::expected<Policy, PolicyErrors> load_policy(const std::vector<std::string>& files,
                                               const FactsSource& facts, PolicyErrors* warnings) {
    Loader loader;
    for (const std::string& file : files) loader.read(file);
    auto policy = loader.merge(facts);
    if (policy && warnings != nullptr) *warnings = loader.warnings();
    return policy;
}

Policy no_policy() {
    Policy out;
    out.mode = Mode::observe;
    out.default_scope.manage = false;
    return out;
}

tl::expected<Policy, PolicyErrors> load_installed_policy(const std::string& root,
                                                         const std::optional<std::string>& config,
                                                         const FactsSource& facts) {
    auto policy = load_policy(config ? std::vector{*config} : policy_files(root), facts);
    if (policy && !config && !has_main_file(root)) policy->rules.push_back({{"*"}, {}, {}, {}});
    if (policy) policy->expire(wall_clock());
    return policy;
}

}  // namespace wq
