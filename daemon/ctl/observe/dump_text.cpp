// SPDX-License-Identifier: LGPL-2.1-or-later
// `dump` for people, and what differs between two dumps.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/cpu_set.h"
#include "base/file.h"
#include "ctl/observe/dump_command.h"
#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of a file
constexpr auto kNoDump = "not the output of `wq-tunectl dump --json`";

std::string joined(const std::vector<std::string>& words, const char* gap = "  ") {
    return fmt::format("{}", fmt::join(words, gap));
}

class DumpText {
  public:
    DumpText(const KernelDump& dump, std::size_t columns, bool colour)
        : dump_(dump), columns_(columns), colour_(colour) {
        for (const auto& pool : dump.pools) pools_[pool.id] = &pool;
    }

    std::string all(const KernelInfo& kernel) {
        head(kernel);
        scopes();
        pools();
        workqueues();
        return std::move(text_);
    }

  private:
    using Rows = std::vector<std::vector<std::string>>;

    void head(const KernelInfo& kernel) {
        text_ +=
            fmt::format("kernel {}, default scope {}\n", kernel.release.empty() ? "unknown" : kernel.release,
                        dump_.default_scope ? name_of(*dump_.default_scope) : "unknown");
        std::string masks;
        for (const auto& [what, cpus] : {std::pair{"unbound work on CPUs ", std::optional(dump_.unbound)},
                                         {", requested ", dump_.requested},
                                         {", isolated ", dump_.isolated}})
            if (cpus) masks += what + (cpus->empty() ? "none" : cpus->list());
        text_ += wrapped(masks, columns_);
    }

    void scopes() {
        Rows rows;
        for (const auto& [scope, pods] : dump_.scopes) {
            CpuSet nodes;  // node numbers, printed as a list
            std::vector<std::string> lists;
            for (const auto& pod : pods) {
                if (pod.node >= 0) nodes.add(static_cast<unsigned>(pod.node));
                lists.push_back(pod.cpus.list());
            }
            rows.push_back({std::string(name_of(scope)), std::to_string(pods.size()),
                            nodes.empty() ? "-" : nodes.list(), joined(lists, " ")});
        }
        add("Affinity scopes", {"SCOPE", "PODS", "NODES", "CPUS OF EACH POD"}, std::move(rows));
    }

    void pools() {
        Rows rows;
        for (const auto& pool : dump_.pools)
            rows.push_back({std::to_string(pool.id),
                            pool.bh    ? "bh"
                            : pool.cpu ? "per-cpu"
                                       : "unbound",
                            std::to_string(pool.refs), std::to_string(pool.nice), std::to_string(pool.idle),
                            std::to_string(pool.workers), pool.node >= 0 ? std::to_string(pool.node) : "-",
                            pool.strict ? "yes" : "no",
                            pool.pod_cpus == pool.cpus
                                ? pool.cpus.list()
                                : fmt::format("{} of {}", pool.pod_cpus.list(), pool.cpus.list())});
        add("Pools", {"POOL", "KIND", "REFS", "NICE", "IDLE", "WORKERS", "NODE", "STRICT", "CPUS"},
            std::move(rows));
    }

    void workqueues() {
        Rows all, rescuers;
        for (const auto& wq : dump_.workqueues) {
            all.push_back({wq.name, wq.kind, std::to_string(wq.max_active),
                           !wq.attrs ? "-" : wq.attrs->scope + (wq.attrs->strict ? " strict" : ""),
                           pools_of(wq)});
            if (const auto& one = wq.rescuer)
                rescuers.push_back({wq.name, one->name, std::to_string(one->pid), one->cpus.list()});
        }
        add("Workqueues", {"WORKQUEUE", "KIND", "MAX", "SCOPE", "POOL: CPUS"}, std::move(all));
        add("Rescuers", {"WORKQUEUE", "RESCUER", "PID", "CPUS"}, std::move(rescuers));
    }

    // Returns "own" if each CPU has its own pool, else "50: 0-11  51: 12-23  default: 49".
    [[nodiscard]] std::string pools_of(const DumpedWorkqueue& wq) const {
        std::map<int, CpuSet> by_pool;
        bool own = true;
        for (const auto& [cpu, id] : wq.pools) {
            by_pool[id].add(cpu);
            const auto pool = pools_.find(id);
            own = own && pool != pools_.end() && pool->second->cpu == cpu;
        }
        if (own) return "own";
        std::vector<std::string> words;
        for (const auto& [id, cpus] : by_pool) words.push_back(fmt::format("{}: {}", id, cpus.list()));
        if (wq.default_pool) words.push_back(fmt::format("default: {}", *wq.default_pool));
        return joined(words);
    }

    void add(const std::string& title, std::vector<std::string> header, Rows rows) {
        if (rows.empty()) return;
        Table table(std::move(header));
        for (auto& row : rows) table.add(std::move(row));
        text_ += fmt::format("\n{}\n{}", title, table.text(columns_, colour_));
    }

    const KernelDump& dump_;
    std::size_t columns_;
    bool colour_;
    std::map<int, const DumpedPool*> pools_;
    std::string text_;
};

// VALUE as text: strings unchanged, lists joined with spaces; "" for null.
std::string text_of(const Json& value) {
    if (value.is_null()) return "";
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_array()) return value.dump();
    std::vector<std::string> words;
    for (const auto& one : value) words.push_back(text_of(one));
    return joined(words, " ");
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
std::string shared_cpus(const Json& workqueue) {
    std::map<int, CpuSet> by_pool;
    for (const auto& [cpu, pool] : workqueue.at("pools").items())
        by_pool[pool.get<int>()].add(static_cast<unsigned>(std::stoul(cpu)));
    std::vector<CpuSet> pools;
    for (auto& [id, cpus] : by_pool) pools.push_back(std::move(cpus));
    std::ranges::sort(pools, {}, &CpuSet::first);
    std::vector<std::string> lists;
    for (const auto& cpus : pools) lists.push_back(cpus.list());
    return joined(lists, " ");
}

// What a dump says of the kernel or of a workqueue: words by what they are about, in order.
using Facts = std::vector<std::pair<std::string, std::string>>;

Facts facts_of(const Json& workqueue) {
    Facts out;
    for (const char* key : {"kind", "flags"}) out.emplace_back(key, text_at(workqueue, key));
    out.emplace_back("scope", scope_of(workqueue));
    for (const char* key : {"strict", "nice", "cpus", "max_active"})
        out.emplace_back(key, text_at(workqueue, key));
    out.emplace_back("pools", shared_cpus(workqueue));
    return out;
}

Facts facts_of_kernel(const Json& dump) {
    Facts out{{"release", text_at(dump.at("kernel"), "release")},
              {"default scope", text_at(dump, "default_scope")},
              {"unbound mask", text_at(dump.at("masks"), "unbound")}};
    for (const Scope scope : kAllScopes) {
        std::string& pods = out.emplace_back(fmt::format("pods of {}", name_of(scope)), "").second;
        for (const auto& one : dump.at("scopes"))
            if (text_at(one, "scope") == name_of(scope)) pods = text_at(one, "nr_pods");
    }
    return out;
}

// What differs. "" for what there was or is not.
Json changes(const Facts& before, const Facts& after) {
    Json out = Json::array();
    for (std::size_t i = 0; i < std::min(before.size(), after.size()); i++)
        if (before[i] != after[i])
            out.push_back(
                {{"what", before[i].first}, {"before", before[i].second}, {"after", after[i].second}});
    return out;
}

// The workqueues of DUMP by name and, because names are not unique, by their number among those of that name.
std::map<std::pair<std::string, unsigned>, Facts> indexed(const Json& dump) {
    std::map<std::string, unsigned> seen;
    std::map<std::pair<std::string, unsigned>, Facts> out;
    for (const auto& wq : dump.at("workqueues")) {
        const auto name = wq.at("name").get<std::string>();
        out[{name, seen[name]++}] = facts_of(wq);
    }
    return out;
}

Json compared(const Json& before, const Json& after) {
    Json workqueues = Json::array(), gone = Json::array(), added = Json::array();
    const auto then = indexed(before), now = indexed(after);
    for (const auto& [key, facts] : then) {
        const auto same = now.find(key);
        if (same == now.end())
            gone.push_back(key.first);
        else if (auto changed = changes(facts, same->second); !changed.empty())
            workqueues.push_back({{"name", key.first}, {"changes", std::move(changed)}});
    }
    for (const auto& [key, facts] : now)
        if (!then.contains(key)) added.push_back(key.first);
    return {{"kernel", changes(facts_of_kernel(before), facts_of_kernel(after))},
            {"workqueues", workqueues},
            {"gone", gone},
            {"new", added}};
}

std::string arrow_of(const Json& change) {
    const auto side = [&](const char* key) {
        const std::string text = text_at(change, key);
        return text.empty() ? "-" : printable(text);
    };
    return side("before") + " -> " + side("after");
}

}  // namespace

std::string kernel_dump_text(const KernelDump& dump, const KernelInfo& kernel, std::size_t columns,
                             bool colour) {
    return DumpText(dump, columns, colour).all(kernel);
}

Result<Json> dump_diff(const Json& before, const Json& after) {
    try {
        return compared(before, after);
    } catch (const std::exception&) {  // a key is missing, or a value has the wrong type
        return fail(kNoDump);
    }
}

Result<Json> read_dump_file(const std::string& path) {
    const auto text = read_file(path, kMostBytes);
    if (!text) return tl::unexpected(text.error());
    auto dump = Json::parse(*text, nullptr, false);
    if (!dump.is_object()) return fail(path + ": " + kNoDump);
    return dump;
}

std::string dump_diff_text(const Json& diff, std::size_t columns, bool colour) {
    std::string out;
    for (const auto& one : diff.at("kernel"))
        out += fmt::format("{}: {}\n", printable(text_at(one, "what")), arrow_of(one));
    if (!diff.at("workqueues").empty()) {
        Table table({"WORKQUEUE", "WHAT", "BEFORE -> NOW"});
        for (const auto& wq : diff.at("workqueues")) {
            std::string name = printable(text_at(wq, "name"));
            for (const auto& one : wq.at("changes"))
                table.add({std::exchange(name, ""), text_at(one, "what"), arrow_of(one)});
        }
        out += (out.empty() ? "" : "\n") + table.text(columns, colour);
    }
    std::string names;
    for (const char* key : {"gone", "new"})
        if (!diff.at(key).empty())
            names += wrapped(fmt::format("{}: {}", key, printable(text_at(diff, key))), columns);
    if (!out.empty() && !names.empty()) out += "\n";
    return out + names + (out.empty() && names.empty() ? "no difference\n" : "");
}

}  // namespace wq::ctl
