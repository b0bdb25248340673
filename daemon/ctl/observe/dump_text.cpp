// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include <map>
#include <utility>

#include "ctl/observe/dump_command.h"
#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

// The kind of a per-CPU pool: whether it is for soft interrupts (BH), and its nice level. Each CPU has one
// pool of each kind.
using OwnKind = std::pair<bool, int>;

std::string heading_of(const OwnKind& kind) {
    return fmt::format("{}NICE {}", kind.first ? "BH " : "", kind.second);
}

std::string list_or_none(const CpuSet& cpus) {
    return cpus.empty() ? "none" : cpus.list();
}

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
        own_pools();
        unbound_pools();
        workqueues();
        nodes();
        rescuers();
        return std::move(text_);
    }

  private:
    void head(const KernelInfo& kernel);
    void scopes();
    void own_pools();
    void unbound_pools();
    void workqueues();
    void nodes();
    void rescuers();

    // Returns "own, NICE 0" if each CPU has its own pool of the same kind, else "50: 0-11  51: 12-23
    // default: 49".
    [[nodiscard]] std::string pools_of(const DumpedWorkqueue& wq) const;
    // Adds nothing if TABLE has no row.
    void add(const std::string& title, const Table& table, bool any) {
        if (any) text_ += fmt::format("\n{}\n{}", title, table.text(columns_, colour_));
    }

    const KernelDump& dump_;
    std::size_t columns_;
    bool colour_;
    std::map<int, const DumpedPool*> pools_;
    std::string text_;
};

void DumpText::head(const KernelInfo& kernel) {
    text_ += fmt::format("kernel {}, default scope {}\n", kernel.release.empty() ? "unknown" : kernel.release,
                         dump_.default_scope ? name_of(*dump_.default_scope) : "unknown");
    std::string masks = "unbound work on CPUs " + list_or_none(dump_.unbound);
    if (dump_.requested) masks += ", requested " + list_or_none(*dump_.requested);
    if (dump_.isolated) masks += ", isolated " + list_or_none(*dump_.isolated);
    text_ += wrapped(masks, columns_);
}

void DumpText::scopes() {
    Table table({"SCOPE", "PODS", "NODES", "CPUS OF EACH POD"});
    for (const auto& [scope, pods] : dump_.scopes) {
        CpuSet nodes;  // node numbers, printed as a list
        std::vector<std::string> lists;
        for (const auto& pod : pods) {
            if (pod.node >= 0) nodes.add(static_cast<unsigned>(pod.node));
            lists.push_back(pod.cpus.list());
        }
        table.add({std::string(name_of(scope)), std::to_string(pods.size()),
                   nodes.empty() ? "-" : nodes.list(), joined(lists, " ")});
    }
    add("Affinity scopes", table, !dump_.scopes.empty());
}

void DumpText::own_pools() {
    std::map<OwnKind, std::map<unsigned, const DumpedPool*>> kinds;
    std::map<unsigned, std::vector<std::string>> rows;
    for (const auto& pool : dump_.pools)
        if (pool.cpu) {
            kinds[{pool.bh, -pool.nice}][*pool.cpu] = &pool;
            rows[*pool.cpu] = {std::to_string(*pool.cpu)};
        }
    std::vector<std::string> header{"CPU"};
    for (const auto& [kind, pools] : kinds) {
        header.push_back(heading_of({kind.first, -kind.second}));
        for (auto& [cpu, row] : rows) {
            const auto found = pools.find(cpu);
            if (found == pools.end())
                row.emplace_back("-");
            else if (kind.first)
                row.push_back(std::to_string(found->second->id));
            else
                row.push_back(fmt::format("{} ({}/{})", found->second->id, found->second->idle,
                                          found->second->workers));
        }
    }
    Table table(header);
    for (const auto& [cpu, row] : rows) table.add(row);
    add("Pools of one CPU: ID (idle/workers)", table, !rows.empty());
}

void DumpText::unbound_pools() {
    Table table({"POOL", "REFS", "NICE", "IDLE", "WORKERS", "NODE", "STRICT", "CPUS"});
    bool any = false;
    for (const auto& pool : dump_.pools) {
        if (pool.cpu) continue;
        any = true;
        const std::string cpus = pool.pod_cpus == pool.cpus
                                     ? pool.cpus.list()
                                     : fmt::format("{} of {}", pool.pod_cpus.list(), pool.cpus.list());
        table.add({std::to_string(pool.id), std::to_string(pool.refs), std::to_string(pool.nice),
                   std::to_string(pool.idle), std::to_string(pool.workers),
                   pool.node >= 0 ? std::to_string(pool.node) : "-", pool.strict ? "yes" : "no", cpus});
    }
    add("Unbound pools", table, any);
}

std::string DumpText::pools_of(const DumpedWorkqueue& wq) const {
    std::map<int, CpuSet> by_pool;
    std::map<OwnKind, std::size_t> own;
    for (const auto& [cpu, id] : wq.pools) {
        by_pool[id].add(cpu);
        const auto pool = pools_.find(id);
        if (pool != pools_.end() && pool->second->cpu == cpu) own[{pool->second->bh, pool->second->nice}]++;
    }
    if (own.size() == 1 && own.begin()->second == wq.pools.size())
        return "own, " + heading_of(own.begin()->first);
    std::vector<std::string> words;
    for (const auto& [id, cpus] : by_pool) words.push_back(fmt::format("{}: {}", id, cpus.list()));
    if (wq.default_pool) words.push_back(fmt::format("default: {}", *wq.default_pool));
    return joined(words);
}

void DumpText::workqueues() {
    Table table({"WORKQUEUE", "KIND", "SCOPE", "POOL: CPUS"});
    for (const auto& wq : dump_.workqueues)
        table.add({wq.name, wq.kind, !wq.attrs ? "-" : wq.attrs->scope + (wq.attrs->strict ? " strict" : ""),
                   pools_of(wq)});
    add("Workqueues", table, !dump_.workqueues.empty());
}

void DumpText::nodes() {
    Table table({"WORKQUEUE", "MAX", "ACTIVE/MAX BY NODE"});
    bool any = false;
    for (const auto& wq : dump_.workqueues) {
        if (wq.nodes.empty()) continue;
        any = true;
        std::vector<std::string> words;
        for (const auto& node : wq.nodes)
            words.push_back(fmt::format("{}: {}/{}", node.node < 0 ? "none" : std::to_string(node.node),
                                        node.active, node.max));
        table.add({wq.name, std::to_string(wq.max_active), joined(words)});
    }
    add("Unbound work that runs", table, any);
}

void DumpText::rescuers() {
    Table table({"WORKQUEUE", "RESCUER", "PID", "CPUS"});
    bool any = false;
    for (const auto& wq : dump_.workqueues) {
        if (!wq.rescuer) continue;
        any = true;
        table.add({wq.name, wq.rescuer->name, std::to_string(wq.rescuer->pid), wq.rescuer->cpus.list()});
    }
    add("Rescuers", table, any);
}

}  // namespace

std::string kernel_dump_text(const KernelDump& dump, const KernelInfo& kernel, std::size_t columns,
                             bool colour) {
    return DumpText(dump, columns, colour).all(kernel);
}

}  // namespace wq::ctl
