// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/dump_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/cpu_set.h"
#include "base/file.h"
#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

// VALUE as text: strings unchanged, lists joined with spaces; "" for null.
std::string text_of(const Json& value) {
    if (value.is_null()) return "";
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_array()) return value.dump();
    std::vector<std::string> words;
    for (const auto& one : value) words.push_back(text_of(one));
    return fmt::format("{}", fmt::join(words, " "));
}

std::string text_at(const Json& object, const char* key) {
    const auto at = object.find(key);
    return at == object.end() ? "" : text_of(*at);
}

// Returns "default (cache)" or "smt"; "" if the workqueue has no scope.
std::string scope_of(const Json& workqueue) {
    const std::string word = text_at(workqueue, "scope"), effective = text_at(workqueue, "effective");
    return word == "default" && !effective.empty() ? fmt::format("default ({})", effective) : word;
}

// The CPUs of each pool, sorted by the lowest CPU: "0-3 4-7".
std::string pools_of(const Json& workqueue) {
    std::map<int, CpuSet> by_pool;
    for (const auto& [cpu, pool] : workqueue.at("pools").items())
        by_pool[pool.get<int>()].add(static_cast<unsigned>(std::stoul(cpu)));
    std::vector<CpuSet> pools;
    for (auto& [id, cpus] : by_pool) pools.push_back(std::move(cpus));
    std::ranges::sort(pools, {}, &CpuSet::first);
    std::vector<std::string> lists;
    for (const auto& cpus : pools) lists.push_back(cpus.list());
    return fmt::format("{}", fmt::join(lists, " "));
}

void compare(std::vector<DumpChange>& out, const std::string& what, std::string before, std::string after) {
    if (before != after) out.push_back({what, std::move(before), std::move(after)});
}

std::vector<DumpChange> changes_of(const Json& before, const Json& after) {
    std::vector<DumpChange> out;
    compare(out, "kind", text_at(before, "kind"), text_at(after, "kind"));
    compare(out, "flags", text_at(before, "flags"), text_at(after, "flags"));
    compare(out, "scope", scope_of(before), scope_of(after));
    for (const char* key : {"strict", "nice", "cpus", "max_active"})
        compare(out, key, text_at(before, key), text_at(after, key));
    compare(out, "pools", pools_of(before), pools_of(after));
    return out;
}

// The workqueues of DUMP by name and, because names are not unique, by their number among those of that name.
std::map<std::pair<std::string, unsigned>, const Json*> indexed(const Json& dump) {
    std::map<std::string, unsigned> seen;
    std::map<std::pair<std::string, unsigned>, const Json*> out;
    for (const auto& wq : dump.at("workqueues")) {
        const auto name = wq.at("name").get<std::string>();
        out[{name, seen[name]++}] = &wq;
    }
    return out;
}

std::map<std::string, std::string> pods_of(const Json& dump) {
    std::map<std::string, std::string> out;
    for (const auto& scope : dump.at("scopes"))
        out[scope.at("scope").get<std::string>()] = text_at(scope, "nr_pods");
    return out;
}

void compare_kernels(DumpDiff& out, const Json& before, const Json& after) {
    compare(out.kernel, "release", text_at(before.at("kernel"), "release"),
            text_at(after.at("kernel"), "release"));
    compare(out.kernel, "default scope", text_at(before, "default_scope"), text_at(after, "default_scope"));
    compare(out.kernel, "unbound mask", text_at(before.at("masks"), "unbound"),
            text_at(after.at("masks"), "unbound"));
    auto pods_before = pods_of(before), pods_after = pods_of(after);
    std::set<std::string> scopes;
    for (const auto& [scope, pods] : pods_before) scopes.insert(scope);
    for (const auto& [scope, pods] : pods_after) scopes.insert(scope);
    for (const auto& scope : scopes)
        compare(out.kernel, "pods of " + scope, pods_before[scope], pods_after[scope]);
}

DumpDiff compared(const Json& before, const Json& after) {
    DumpDiff out;
    compare_kernels(out, before, after);
    const auto then = indexed(before), now = indexed(after);
    for (const auto& [key, wq] : then) {
        const auto same = now.find(key);
        if (same == now.end()) {
            out.gone.push_back(key.first);
            continue;
        }
        auto changes = changes_of(*wq, *same->second);
        if (!changes.empty()) out.workqueues.push_back({key.first, std::move(changes)});
    }
    for (const auto& [key, wq] : now)
        if (!then.contains(key)) out.added.push_back(key.first);
    return out;
}

std::string or_none(const std::string& text) {
    return text.empty() ? "-" : printable(text);
}

void add_names(std::string& out, const char* title, const std::vector<std::string>& names,
               std::size_t columns) {
    if (names.empty()) return;
    std::vector<std::string> shown;
    for (const auto& name : names) shown.push_back(printable(name));
    out += wrapped(fmt::format("{}: {}", title, fmt::join(shown, " ")), columns);
}

Json changes_json(const std::vector<DumpChange>& changes) {
    Json out = Json::array();
    for (const auto& one : changes)
        out.push_back({{"what", one.what}, {"before", one.before}, {"after", one.after}});
    return out;
}

}  // namespace

Result<DumpDiff> diff_dumps(const Json& before, const Json& after) {
    try {
        return compared(before, after);
    } catch (const std::exception&) {  // a key is missing, or a value has the wrong type
        return fail("not the output of `wq-tunectl dump --json`");
    }
}

Result<Json> read_dump_file(const std::string& path, const std::vector<std::string>& names) {
    const auto text = read_file(path, kMostBytes);
    if (!text) return tl::unexpected(text.error());
    auto dump = Json::parse(*text, nullptr, false);
    const auto at = dump.is_object() ? dump.find("workqueues") : dump.end();
    if (!dump.is_object() || at == dump.end() || !at->is_array())
        return fail(path + ": not the output of `wq-tunectl dump --json`");
    if (names.empty()) return dump;
    Json some = Json::array();
    for (const auto& wq : *at)
        if (std::ranges::find(names, text_at(wq, "name")) != names.end()) some.push_back(wq);
    *at = std::move(some);
    return dump;
}

std::string dump_diff_text(const DumpDiff& diff, std::size_t columns, bool colour) {
    std::string out;
    for (const auto& one : diff.kernel)
        out += fmt::format("{}: {} -> {}\n", one.what, or_none(one.before), or_none(one.after));
    if (!diff.workqueues.empty()) {
        Table table({"WORKQUEUE", "WHAT", "BEFORE -> NOW"});
        for (const auto& wq : diff.workqueues) {
            std::string name = printable(wq.name);
            for (const auto& one : wq.changes) {
                table.add({name, one.what, or_none(one.before) + " -> " + or_none(one.after)});
                name.clear();
            }
        }
        out += (out.empty() ? "" : "\n") + table.text(columns, colour);
    }
    if (!out.empty() && !(diff.gone.empty() && diff.added.empty())) out += "\n";
    add_names(out, "gone", diff.gone, columns);
    add_names(out, "new", diff.added, columns);
    return out.empty() ? "no difference\n" : out;
}

Json dump_diff_json(const DumpDiff& diff) {
    Json workqueues = Json::array();
    for (const auto& wq : diff.workqueues)
        workqueues.push_back({{"name", wq.name}, {"changes", changes_json(wq.changes)}});
    return {{"kernel", changes_json(diff.kernel)},
            {"workqueues", workqueues},
            {"gone", diff.gone},
            {"new", diff.added}};
}

}  // namespace wq::ctl
