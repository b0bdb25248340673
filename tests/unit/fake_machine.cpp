// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fake_machine.h"

#include <stdexcept>

namespace wq::test {

Topology machine(Shape shape) {
    Topology out;
    const unsigned cores = shape.sockets * shape.cores;
    out.online = out.present = out.possible = CpuSet::range(0, cores * shape.threads - 1);
    for (unsigned core = 0; core < cores; core++) {
        CpuSet cpus;
        for (unsigned thread = 0; thread < shape.threads; thread++) cpus.add(core + thread * cores);
        out.cores.push_back(cpus);
        if (core % shape.cores == 0) out.llcs.push_back({{}, core / shape.cores});
        out.llcs.back().cpus |= cpus;
    }
    for (const Llc& llc : out.llcs) out.packages.push_back(llc.cpus);
    for (const Llc& llc : out.llcs)
        if (!shape.one_node) out.nodes.push_back({*llc.numa_node, llc.cpus});
    if (shape.one_node) out.nodes = {{0, out.online}};
    return out;
}

Topology without(Topology topology, const std::string& offline) {
    const CpuSet gone = *CpuSet::parse_list(offline);
    topology.online -= gone;
    for (CpuSet& core : topology.cores) core -= gone;
    for (Llc& llc : topology.llcs) llc.cpus -= gone;
    for (NumaNode& node : topology.nodes) node.cpus -= gone;
    for (CpuSet& package : topology.packages) package -= gone;
    std::erase_if(topology.cores, [](const CpuSet& set) { return set.empty(); });
    std::erase_if(topology.packages, [](const CpuSet& set) { return set.empty(); });
    std::erase_if(topology.llcs, [](const Llc& llc) { return llc.cpus.empty(); });
    std::erase_if(topology.nodes, [](const NumaNode& node) { return node.cpus.empty(); });
    return topology;
}

KernelInfo kernel_612() {
    KernelInfo out;
    out.release = "6.12.107";
    out.scopes = {Scope::cpu, Scope::smt, Scope::cache, Scope::numa, Scope::system};
    return out;
}

KernelInfo kernel_72(unsigned size) {
    KernelInfo out;
    out.release = "7.2.13";
    out.scopes = {kAllScopes.begin(), kAllScopes.end()};
    out.cache_shard_size = size;
    return out;
}

Workqueue unbound(const Topology& topology, Scope effective, const std::string& name) {
    Workqueue out;
    out.name = name;
    out.inode = 1;
    out.scope = {"default", effective};
    out.strict = false;
    out.effective = topology.online;
    return out;
}

Workqueue default_target(const Topology& topology, Scope scope) {
    Workqueue out = unbound(topology, scope, kDefaultTarget);
    out.kind = Kind::default_scope;
    out.scope.word = name_of(scope);
    out.strict.reset();
    return out;
}

Policy rule_for_all(const ScopeWish& wish, std::optional<bool> strict) {
    Policy out;
    out.default_scope.manage = false;
    out.rules = {{{"*"}, wish, strict, {"rules.toml", 1}}};
    return out;
}

ScopeWish planned() {
    return {.kind = ScopeWish::Kind::plan};
}

ScopeWish leave() {
    return {ScopeWish::Kind::leave, {}};
}

ScopeWish fixed(Scope scope) {
    return {ScopeWish::Kind::fixed, scope};
}

OwnedEntries saved_entries(const TempTree& tree, const std::string& file, OwnedStore::Of of) {
    OwnedStore store(tree.path(file), of);
    if (const auto loaded = store.load(); !loaded) throw std::runtime_error(loaded.error().text);
    return store.entries();
}

Entry workqueue(const std::string& name, const WorkqueueFiles& files) {
    return Dir(name,
               {File("per_cpu", "0\n"), File("max_active", files.max_active + "\n", files.max_active_mode),
                File("nice", "0\n"), File("cpumask", files.cpumask + "\n"),
                File("affinity_scope", files.scope + "\n"), File("affinity_strict", files.strict + "\n")});
}

std::vector<Entry> kernel_tree(std::vector<Entry> workqueues, const std::string& default_scope,
                               const std::string& shard_size, const std::string& mask) {
    workqueues.push_back(File("cpumask", mask + "\n"));
    std::vector<Entry> parameters = {File("default_affinity_scope", default_scope + "\n")};
    if (!shard_size.empty()) parameters.push_back(File("cache_shard_size", shard_size + "\n", 0444));
    return {Dir("sys/devices/virtual/workqueue", std::move(workqueues)),
            Dir("sys/module/workqueue/parameters", std::move(parameters)),
            File("proc/cmdline", "quiet\n"),
            File("proc/sys/kernel/osrelease", "6.12.107\n"),
            Dir("run/wq-tuned"),
            Dir("etc/wq-tuned")};
}

std::string wq_path(const std::string& name, const std::string& file) {
    return "sys/devices/virtual/workqueue/" + name + "/" + file;
}

}  // namespace wq::test
