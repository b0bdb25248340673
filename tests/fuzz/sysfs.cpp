// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Everything that the daemon reads from /sys and /proc, in a small tree made from the input. Each line is a
// file: "PATH TEXT", where TEXT may have the escapes "\n", "\0" and "\\" and gets a newline at its end;
// "PATH/" is a folder. The usual folders have short names, see kFolders.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <utility>

#include "counters/counter_table.h"
#include "ctl/topology_source.h"
#include "fuzz.h"
#include "machine/host_facts.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/workqueue_fs.h"
#include "plan/plan.h"
#include "plan/pods.h"

using wq::CpuSet;
using wq::Topology;
using wq::fuzz::folder;
using wq::fuzz::require;

static constexpr std::size_t kMostFiles = 256;
static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kFolders = {
    {{"cpu/", "sys/devices/system/cpu/"},
     {"node/", "sys/devices/system/node/"},
     {"wq/", "sys/devices/virtual/workqueue/"},
     {"param/", "sys/module/workqueue/parameters/"},
     {"cg/", "sys/fs/cgroup/"}}};

static std::string full_path(std::string_view path) {
    for (const auto& [name, stands_for] : kFolders)
        if (path.starts_with(name)) return std::string(stands_for).append(path.substr(name.size()));
    return std::string(path);
}

static std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); i++) {
        const bool escaped = text[i] == '\\' && i + 1 < text.size();
        const char c = escaped ? text[++i] : text[i];
        out += escaped && c == 'n' ? '\n' : escaped && c == '0' ? '\0' : c;
    }
    return out + "\n";
}

static void make_entry(std::string_view line) {
    const auto space = line.find(' ');
    const std::string path = full_path(line.substr(0, space));
    if (path.empty() || path.size() > 200 || path.find("..") != std::string::npos) return;
    try {
        if (path.ends_with('/'))
            folder().add(wq::test::Dir(path));
        else
            folder().write(path, unescaped(space == std::string_view::npos ? "" : line.substr(space + 1)));
    } catch (const std::exception&) {
        // The name is already a file, or has a NUL: leave the entry out.
    }
}

static void make_tree(std::string_view text) {
    for (const char* top : {"sys", "proc", "etc", "run", "var"}) folder().remove(top);
    for (std::size_t n = 0; n < kMostFiles && !text.empty(); n++) {
        const auto end = text.find('\n');
        const auto line = text.substr(0, end);
        if (line.starts_with("sys/") || line.starts_with("proc/") || line.starts_with("etc/") ||
            line.starts_with("run/") || full_path(line) != line)
            make_entry(line);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
}

static bool plain(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// Checks that GROUPS are disjoint, not empty, ascend by their lowest CPU, and together are WHOLE.
template <class Groups, class Cpus>
static void check_partition(const Groups& groups, Cpus cpus, const CpuSet& whole, std::string_view what) {
    CpuSet seen;
    unsigned last = 0;
    for (const auto& group : groups) {
        const CpuSet& set = cpus(group);
        require(!set.empty() && !set.intersects(seen), fmt::format("{}: disjoint, none of them empty", what));
        require(seen.empty() || set.first() > last, fmt::format("{}: in ascending order", what));
        last = set.first();
        seen |= set;
    }
    require(seen == whole, fmt::format("{}: they are all CPUs", what));
}

static const CpuSet& itself(const CpuSet& set) {
    return set;
}

static void check_topology(const Topology& topology) {
    require(!topology.online.empty(), "a machine has a CPU");
    require(topology.present.contains(topology.online), "online CPUs are present");
    require(topology.possible.contains(topology.present), "present CPUs are possible");
    check_partition(topology.cores, itself, topology.online, "cores");
    check_partition(
        topology.llcs, [](const wq::Llc& llc) -> const CpuSet& { return llc.cpus; },
        topology.online - topology.isolated, "LLCs");
    CpuSet in_nodes;
    for (const auto& node : topology.nodes) {
        require(!node.cpus.empty() && !node.cpus.intersects(in_nodes), "nodes are disjoint");
        in_nodes |= node.cpus;
    }
    require(topology.online.contains(in_nodes), "nodes hold online CPUs only");
    for (const auto& warning : topology.warnings) require(plain(warning), "warnings can be shown");
    require(plain(topology.llc_unknown), "why LLCs are unknown can be shown");
    require(!wq::fingerprint(topology).empty(), "a machine has a fingerprint");
    for (const wq::Scope scope : wq::kAllScopes)
        check_partition(wq::pods_of(scope, topology, 8), itself, topology.online, name_of(scope));
}

// Whether a pod of the planned scope is not inside one LLC. False if all sockets have one core, since LLCs
// group nothing then, and if the workqueue has isolated CPUs, which are in no LLC.
static bool crosses_llcs(const wq::PlanLine& line, const Topology& topology) {
    const wq::CoreIndex cores(topology);
    const bool sockets =
        !topology.packages.empty() && std::ranges::all_of(topology.packages, [&](const CpuSet& package) {
            return cores.cores_in(package) == 1;
        });
    if (sockets || line.target.effective.intersects(topology.isolated)) return false;
    const auto pods = wq::restrict_to(wq::pods_of(*line.planned, topology, 8), line.target.effective);
    return std::ranges::any_of(pods, [&](const CpuSet& pod) {
        return std::ranges::none_of(topology.llcs,
                                    [&](const wq::Llc& llc) { return llc.cpus.contains(pod); });
    });
}

static void check_plan(const wq::PlanLine& line, const wq::KernelInfo& kernel, const Topology& topology) {
    require(!line.reason.empty(), "a plan has a reason");
    require(line.finding != wq::Finding::change || (line.planned && kernel.has(*line.planned)),
            "what is written is a scope that the kernel has");
    require(line.finding != wq::Finding::change || line.target.untouchable.empty(),
            "what is untouchable is not written");
    require(line.finding != wq::Finding::change || !crosses_llcs(line, topology), "no plan crosses an LLC");
    for (const auto& candidate : line.candidates)
        require(candidate.pools > 0 && candidate.min_cores <= candidate.max_cores && !candidate.same.empty(),
                "a candidate has pools");
}

static std::vector<wq::Workqueue> read_workqueues(const wq::Paths& paths) {
    const wq::WorkqueueFs files(paths);
    std::vector<wq::Workqueue> targets;
    const auto names = files.names();
    for (const auto& name : names ? *names : std::vector<std::string>{}) {
        const auto target = files.read(name);
        require(target || !target.error().text.empty(), "what is refused has a reason");
        if (!target) continue;
        require(!target->untouchable.empty() || (plain(name) && !target->effective.empty()),
                "what may be planned has a name and CPUs");
        targets.push_back(*target);
    }
    return targets;
}

static void check_planning(const wq::Paths& paths, const Topology& topology) {
    const wq::KernelInfo kernel = wq::probe_kernel(paths);
    const auto targets = read_workqueues(paths);
    wq::Policy policy;
    policy.rules = {{{"*"}, {}, {}, {"rules.toml", 1}}};
    policy.default_scope.manage = true;
    const unsigned size = wq::effective_shard_size(kernel, policy);
    const auto why = wq::why_pods_unknown(topology, topology.online - topology.isolated, kernel, size);
    const auto lines = wq::make_plan({topology, kernel, policy, targets, why, size});
    require(lines.size() == targets.size(), "a line per target");
    for (const auto& line : lines) check_plan(line, kernel, topology);
}

FUZZ_TARGET(sysfs) {
    make_tree(text);
    const wq::Paths paths{folder().root()};
    const auto topology = wq::read_topology("fsroot:" + folder().root());
    require(topology || topology.error().text.find(folder().root()) != std::string::npos,
            "an error names its file");
    if (topology) {
        check_topology(*topology);
        check_planning(paths, *topology);
    }
    (void)wq::read_host_facts(paths, topology);
    for (const auto& partition : wq::read_isolation(paths).partitions)
        require(plain(partition.cgroup) && !partition.cpus.empty(), "a partition has CPUs");
    for (const char* name : {"psi:cpu.some", "psi:io.full", "diskstats:sda.rkB", "file:/run/number"})
        if (const auto value = wq::read_machine_counter(paths, name))
            require(*value >= 0 && *value < 1e308 * 10, "a reading is a number");
}
