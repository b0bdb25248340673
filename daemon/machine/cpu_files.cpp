// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/topology.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "machine/host_facts.h"
#include "machine/llc_rule.h"

namespace wq {
namespace {

using Parser = Result<CpuSet> (*)(std::string_view);

// The content of a file, without its newline and the NUL that some kernels leave in their mask files (Kunpeng
// 920). Empty if there is no such file.
Result<std::optional<std::string>> text_if_there(const std::string& path) {
    auto text = read_file(path);
    if (!text && text.error().code == ENOENT) return std::nullopt;
    if (!text) return tl::unexpected(text.error());
    while (text->ends_with('\0') || text->ends_with('\n')) text->pop_back();
    return std::move(*text);
}

Result<std::optional<CpuSet>> parse_if_there(const std::string& path, Parser parse) {
    const auto text = text_if_there(path);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return std::nullopt;
    auto set = parse(**text);
    if (!set) return tl::unexpected(set.error().in(path));
    return std::move(*set);
}

// Reads a set that the kernel prints as a mask and as a list. The list counts only without a mask: if the two
// differ (Opteron 6276), the list is wrong.
Result<std::optional<CpuSet>> read_twin(const std::string& mask_path, const std::string& list_path) {
    auto mask = parse_if_there(mask_path, CpuSet::parse_mask);
    return mask && !*mask ? parse_if_there(list_path, CpuSet::parse_list) : mask;
}

// Reads one tree. Each step uses the results of the earlier ones.
class Reader {
  public:
    explicit Reader(const Paths& paths)
        : paths_(paths), cpu_(paths.cpus()), node_(paths.root + "/sys/devices/system/node") {}

    Result<Topology> read() {
        if (auto found = find_online(); !found) return tl::unexpected(found.error());
        out_.source = "live";
        out_.present = whole_machine("present");
        if (out_.present.empty()) out_.present = folders_;
        out_.present |= out_.online;
        out_.possible = whole_machine("possible") | out_.present;
        out_.isolated = whole_machine("isolated") & out_.online;
        out_.first = CpuSet::parse_list(read_first_line(paths_.first_cpus())).value_or(CpuSet{});
        find_cores();
        find_nodes();
        // The old name, which all kernels have.
        out_.packages = find_groups("core_siblings", "package siblings");
        LlcFacts facts;
        facts.arch = read_arch(paths_);
        facts.clusters = find_groups("cluster_cpus", "cluster siblings");
        facts.caches = find_caches();
        facts.vendor = read_cpu_vendor(paths_);
        facts.sched_levels = [this] { return read_sched_levels(paths_); };
        if (warnings_ > 1) out_.warnings[0] += fmt::format(" (and {} more like it)", warnings_ - 1);
        set_llcs(out_, facts);
        return std::move(out_);
    }

  private:
    [[nodiscard]] std::string of_cpu(unsigned cpu, std::string_view file) const {
        return fmt::format("{}/cpu{}/{}", cpu_, cpu, file);
    }

    // Finds the online CPUs with the `online` file. POWER7's tree does not have it; then we read each CPU's
    // own `online` file. A CPU without a folder does not count: it went offline meanwhile, or the range is
    // invalid (0-65535).
    Status find_online() {
        for (const unsigned cpu : numbered(cpu_, "cpu")) folders_.add(cpu);
        if (folders_.empty()) return fail(cpu_ + ": no CPUs found");

        const std::string path = cpu_ + "/online";
        const auto online = parse_if_there(path, CpuSet::parse_list);
        if (!online) return tl::unexpected(online.error());
        if (!*online) {
            for (unsigned cpu : folders_.cpus())
                if (says_online(cpu)) out_.online.add(cpu);
        } else {
            out_.online = **online & folders_;
            if (const CpuSet missing = **online - folders_; !missing.empty())
                warn(fmt::format("{}: CPUs {} have no folder: left out", path, missing.list()));
        }
        if (out_.online.empty()) return fail(path + ": no CPU is online");
        return {};
    }

    // cpuN/online does not exist if the CPU cannot go offline.
    bool says_online(unsigned cpu) {
        const auto text = text_if_there(of_cpu(cpu, "online"));
        if (text && (!*text || **text == "1")) return true;
        if (text && **text == "0") return false;
        warn_cpu(cpu, text ? of_cpu(cpu, "online") + ": neither 0 nor 1" : text.error().text, "left out");
        return false;
    }

    // What is wrong is one line with an example: in a contradictory tree every CPU disagrees. Only printable
    // ASCII, so that a terminal and JSON can show it.
    void warn(std::string line) {
        if (warnings_++ > 0) return;
        std::ranges::replace_if(
            line, [](char c) { return c < ' ' || c > '~'; }, '?');
        out_.warnings = {std::move(line)};
    }

    void warn_cpu(unsigned cpu, const std::string& why, std::string_view then) {
        warn(fmt::format("CPU {}: {}: {}", cpu, why, then));
    }

    CpuSet whole_machine(const char* name) {
        auto set = parse_if_there(cpu_ + "/" + name, CpuSet::parse_list);
        if (!set) warn(set.error().text + ": ignored");
        return set && *set ? **set : CpuSet{};
    }

    [[nodiscard]] Result<CpuSet> siblings_of(unsigned cpu) const {
        const std::string path = of_cpu(cpu, "topology/thread_siblings");  // the old name
        const auto set = read_twin(path, path + "_list");
        if (!set) return tl::unexpected(set.error());
        if (!*set || !(*set)->has(cpu)) return fail(path + ": does not contain this CPU");
        return **set;
    }

    void find_cores() {
        std::map<unsigned, CpuSet> siblings;
        CpuSet alone;
        for (const unsigned cpu : out_.online.cpus()) {
            auto set = siblings_of(cpu);
            if (set) siblings[cpu] = std::move(*set) & out_.online;
            if (set) continue;
            warn_cpu(cpu, set.error().text, "treated as a separate core");
            alone.add(cpu);
        }
        for (auto& [cpu, set] : siblings) set -= alone;
        out_.cores = partition_of(siblings, "thread siblings");
        for (const unsigned cpu : alone.cpus()) out_.cores.push_back({cpu});
        std::ranges::sort(out_.cores, {}, &CpuSet::first);
    }

    void find_nodes() {
        CpuSet rest = out_.online;
        for (const unsigned id : numbered(node_, "node")) {
            const std::string folder = fmt::format("{}/node{}", node_, id);
            auto set = read_twin(folder + "/cpumap", folder + "/cpulist");
            if (!set) {
                warn(set.error().text + ": node left out");
                continue;
            }
            const CpuSet here = *set ? **set & out_.online : CpuSet{};
            if (!rest.contains(here))
                warn(folder + ": contains CPUs of another node: they stay in that node");
            if (CpuSet cpus = here & rest; !cpus.empty()) {
                rest -= cpus;
                out_.nodes.push_back({id, std::move(cpus)});
            }
        }
    }

    // Groups of CPUs from FILE in each CPU's topology folder. A missing or invalid file gives no warning,
    // because the pods of most machines do not depend on it (machine/llc_rule.cpp).
    std::vector<CpuSet> find_groups(const std::string& file, const char* what) {
        std::map<unsigned, CpuSet> named;
        for (unsigned cpu : out_.online.cpus()) {
            const std::string path = of_cpu(cpu, "topology/" + file);
            const auto set = read_twin(path, path + "_list");
            if (set && *set && (*set)->has(cpu)) named[cpu] = **set & out_.online;
        }
        return partition_of(named, what);
    }

    // Turns what each CPU says into disjoint groups. In a conflict, the lower CPU wins.
    std::vector<CpuSet> partition_of(const std::map<unsigned, CpuSet>& named, const char* what) {
        std::vector<CpuSet> groups;
        std::map<unsigned, std::size_t> group_of;
        CpuSet rest = out_.online;
        for (const auto& [cpu, set] : named) {
            if (rest.has(cpu)) {
                groups.push_back(set & rest);
                for (unsigned member : groups.back().cpus()) group_of[member] = groups.size() - 1;
                rest -= set;
            }
            if (groups[group_of[cpu]] != set)
                warn_cpu(cpu, fmt::format("its {} disagree", what),
                         fmt::format("using the group {}", groups[group_of[cpu]].list()));
        }
        return groups;
    }

    // For each CPU, its caches of level 2 and 3, and its outermost one: those that the LLC rule needs.
    std::vector<Cache> find_caches() {
        std::map<unsigned, std::map<unsigned, CpuSet>> named;  // level -> CPU -> those that share the cache
        CpuSet known;
        for (const unsigned cpu : out_.online.cpus()) {
            const auto caches = caches_of(cpu);
            if (!caches) warn_cpu(cpu, caches.error().text, "its caches are not known");
            if (!caches || caches->empty()) continue;
            known.add(cpu);
            const Cache& outer = caches->back();
            for (const Cache& cache : *caches) {
                if (!outer.cpus.contains(cache.cpus) && !cache.cpus.contains(outer.cpus))
                    warn_cpu(cpu, "its caches overlap", "its pods are in doubt");
                if (cache.level == 2 || cache.level == 3 || cache.level == outer.level)
                    named[cache.level][cpu] = cache.cpus;
            }
        }
        std::vector<Cache> out;
        for (const auto& [level, sets] : named)
            for (const CpuSet& group : partition_of(sets, "caches")) out.push_back({level, group & known});
        // A CPU without known caches gets those of its thread siblings, because a core is never divided.
        for (const CpuSet& core : out_.cores)
            if (const CpuSet missing = core - known; !missing.empty() && missing != core)
                for (Cache& cache : out)
                    if (cache.cpus.intersects(core)) cache.cpus |= missing;
        return out;
    }

    // The data and unified caches of CPU, from the inside out. Error: a file is invalid.
    [[nodiscard]] Result<std::vector<Cache>> caches_of(unsigned cpu) const {
        std::vector<Cache> out;
        for (unsigned index = 0;; index++) {
            const std::string folder = of_cpu(cpu, fmt::format("cache/index{}", index));
            const auto set = read_twin(folder + "/shared_cpu_map", folder + "/shared_cpu_list");
            if (!set) return tl::unexpected(set.error());
            if (!*set) return out;
            if (!(*set)->has(cpu)) return fail(folder + ": this CPU is not among those that share it");
            const auto level = level_of(folder);
            if (!level) return tl::unexpected(level.error());
            if (*level > 0) out.push_back({*level, **set & out_.online});
        }
    }

    // 0: not a cache that the LLC rule looks at. On arm64, a first level without a size is known only from
    // the CPU's registers, and the kernel does not use it.
    static Result<unsigned> level_of(const std::string& folder) {
        const auto level = text_if_there(folder + "/level");
        const auto type = text_if_there(folder + "/type");
        for (const auto* text : {&level, &type})
            if (!*text) return tl::unexpected(text->error());
        if (!*level || !*type || **type == "Instruction") return 0;
        if (**type != "Data" && **type != "Unified") return fail(folder + "/type: not a type of caches");
        const auto number = number_of<unsigned>(**level);
        if (!number || *number == 0 || *number > 5) return fail(folder + "/level: not a level of caches");
        return *number == 1 && read_first_line(folder + "/size").empty() ? 0 : *number;
    }

    const Paths& paths_;
    std::string cpu_;
    std::string node_;
    CpuSet folders_;  // CPUs that have a folder
    Topology out_;
    std::size_t warnings_ = 0;
};

}  // namespace

std::vector<unsigned> numbered(const std::string& folder, std::string_view prefix) {
    std::vector<unsigned> out;
    for (const std::string& name : names_or_none(folder)) {
        if (!name.starts_with(prefix)) continue;
        const auto number = number_of<unsigned>(std::string_view(name).substr(prefix.size()));
        if (number && *number < CpuSet::kMaxCpus) out.push_back(*number);
    }
    std::ranges::sort(out);
    return out;
}

Result<Topology> read_cpu_files(const Paths& paths) {
    return Reader(paths).read();
}

std::string cpu_state(const Paths& paths) {
    std::string out;
    for (const char* file : {"online", "present", "possible", "isolated"})
        out += read_file(paths.cpus() + "/" + file).value_or("") + ";";
    return out;
}

Status keep_first_cpus(const Paths& paths, const Topology& now) {
    if (!now.warnings.empty() || exists(paths.first_cpus())) return {};
    return replace_state_file(paths.first_cpus(), (now.online - now.isolated).list() + "\n");
}

}  // namespace wq
