// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/cpu_files.h"

#include <fmt/format.h>
#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace wq {
namespace {

using Parser = Result<CpuSet> (*)(std::string_view);

// What is wrong with a tree, as one line with an example: in a contradictory tree every CPU disagrees. Only
// printable ASCII, so that a terminal and JSON can show it.
class Warnings {
  public:
    void add(std::string line) {
        if (count_++ > 0) return;
        std::ranges::replace_if(
            line, [](char c) { return c < ' ' || c > '~'; }, '?');
        first_ = std::move(line);
    }

    std::vector<std::string> take() {
        if (count_ == 0) return {};
        if (count_ > 1) first_ += fmt::format(" (and {} more like it)", count_ - 1);
        return {std::move(first_)};
    }

  private:
    std::string first_;
    std::size_t count_ = 0;
};

// The content of a file, without the terminating NUL that some kernels leave in their mask files (Kunpeng
// 920). Empty if there is no such file.
Result<std::optional<std::string>> text_if_there(const std::string& path) {
    auto text = read_file(path);
    if (!text) {
        if (text.error().code == ENOENT) return std::nullopt;
        return tl::unexpected(text.error());
    }
    while (!text->empty() && text->back() == '\0') text->pop_back();
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

// Reads a set that the kernel prints twice, as a mask and as a list. Both must be valid. The mask is used:
// hwloc reads it, and if the two differ (Opteron 6276), the list is wrong.
Result<std::optional<CpuSet>> read_twin(const std::string& mask_path, const std::string& list_path) {
    auto mask = parse_if_there(mask_path, CpuSet::parse_mask);
    if (!mask) return mask;
    auto list = parse_if_there(list_path, CpuSet::parse_list);
    if (!list || !*mask) return list;
    return mask;
}

// Reads one tree. Each step uses the results of the earlier ones.
class Reader {
  public:
    explicit Reader(const std::string& root)
        : cpu_(root + "/sys/devices/system/cpu"), node_(root + "/sys/devices/system/node") {}

    Result<CpuFiles> read() {
        if (auto found = find_online(); !found) return tl::unexpected(found.error());
        files_.present = whole_machine("present");
        if (files_.present.empty()) files_.present = folders_;
        files_.present |= files_.online;
        files_.possible = whole_machine("possible") | files_.present;
        files_.isolated = whole_machine("isolated") & files_.online;
        find_cores();
        find_nodes();
        files_.packages =
            find_groups("core_siblings", "package siblings");  // the old name, which all kernels have
        files_.clusters = find_groups("cluster_cpus", "cluster siblings");
        check_caches();
        files_.warnings = warnings_.take();
        return std::move(files_);
    }

  private:
    [[nodiscard]] std::string of_cpu(unsigned cpu, std::string_view file) const {
        return fmt::format("{}/cpu{}/{}", cpu_, cpu, file);
    }

    // Finds the online CPUs with the `online` file. POWER7's tree does not have it; then we read each CPU's
    // own `online` file. A CPU without a folder does not count: it went offline meanwhile, or the range is
    // invalid (0-65535).
    Status find_online() {
        bool beyond = false;
        for (unsigned cpu : numbered(cpu_, "cpu"))
            if (cpu < CpuSet::kMaxCpus)
                folders_.add(cpu);
            else
                beyond = true;
        if (beyond)
            warnings_.add(fmt::format("{}: CPU numbers from {} on are ignored", cpu_, CpuSet::kMaxCpus));
        if (folders_.empty()) return fail(cpu_ + ": no CPUs found");

        const std::string path = cpu_ + "/online";
        const auto online = parse_if_there(path, CpuSet::parse_list);
        if (!online) return tl::unexpected(online.error());
        if (!*online) {
            for (unsigned cpu : folders_.cpus())
                if (says_online(cpu)) files_.online.add(cpu);
        } else {
            files_.online = **online & folders_;
            if (const CpuSet missing = **online - folders_; !missing.empty())
                warnings_.add(fmt::format("{}: CPUs {} have no folder: left out", path, missing.list()));
        }
        if (files_.online.empty()) return fail(path + ": no CPU is online");
        return {};
    }

    // cpuN/online does not exist if the CPU cannot go offline.
    bool says_online(unsigned cpu) {
        const auto text = text_if_there(of_cpu(cpu, "online"));
        if (text && (!*text || **text == "1\n" || **text == "1")) return true;
        if (text && (**text == "0\n" || **text == "0")) return false;
        warn_cpu(cpu, text ? of_cpu(cpu, "online") + ": neither 0 nor 1" : text.error().text, "left out");
        return false;
    }

    void warn_cpu(unsigned cpu, const std::string& why, std::string_view then) {
        warnings_.add(fmt::format("CPU {}: {}: {}", cpu, why, then));
    }

    CpuSet whole_machine(const char* name) {
        auto set = parse_if_there(cpu_ + "/" + name, CpuSet::parse_list);
        if (!set) warnings_.add(set.error().text + ": ignored");
        return set && *set ? **set : CpuSet{};
    }

    Result<CpuSet> siblings_of(unsigned cpu) const {
        for (const char* name : {"thread_siblings", "core_cpus"}) {  // the old name, which all kernels have
            const std::string path = of_cpu(cpu, "topology/") + name;
            const auto set = read_twin(path, path + "_list");
            if (!set) return tl::unexpected(set.error());
            if (!*set) continue;
            if (!(*set)->has(cpu)) return fail(path + ": does not contain this CPU");
            return **set;
        }
        return fail(of_cpu(cpu, "topology") + ": no thread siblings");
    }

    // As in the kernel's topology_sibling_cpumask(), a CPU belongs to the core of its lowest online sibling.
    void find_cores() {
        std::map<unsigned, CpuSet> siblings;
        CpuSet alone;
        for (unsigned cpu : files_.online.cpus()) {
            auto set = siblings_of(cpu);
            if (!set) {
                warn_cpu(cpu, set.error().text, "treated as a separate core");
                alone.add(cpu);
            }
            siblings[cpu] = set ? std::move(*set) & files_.online : CpuSet{cpu};
        }
        std::map<unsigned, CpuSet> cores;
        for (auto& [cpu, set] : siblings) {
            if (!alone.has(cpu)) set -= alone;
            cores[set.first()].add(cpu);
        }
        for (auto& [leader, core] : cores) {
            for (unsigned cpu : core.cpus())
                if (siblings[cpu] != core) {
                    warn_cpu(cpu, "its thread siblings disagree",
                             fmt::format("treated as part of core {}", core.list()));
                    break;
                }
            files_.cores.push_back(std::move(core));
        }
        // If siblings disagree, a leader may be in the core of another CPU.
        std::ranges::sort(files_.cores, {}, &CpuSet::first);
    }

    void find_nodes() {
        CpuSet rest = files_.online;
        for (const unsigned id : numbered(node_, "node")) {
            const std::string folder = fmt::format("{}/node{}", node_, id);
            auto set = read_twin(folder + "/cpumap", folder + "/cpulist");
            if (!set) {
                warnings_.add(set.error().text + ": node left out");
                continue;
            }
            const CpuSet here = *set ? **set & files_.online : CpuSet{};
            if (!rest.contains(here))
                warnings_.add(folder + ": contains CPUs of another node: they stay in that node");
            if (CpuSet cpus = here & rest; !cpus.empty()) {
                rest -= cpus;
                files_.nodes.push_back({id, std::move(cpus)});
            }
        }
    }

    // Groups of CPUs from FILE in each CPU's topology folder. A missing or invalid file gives no warning,
    // because the pods of most machines do not depend on it (machine/llc_rule.cpp).
    std::vector<CpuSet> find_groups(const std::string& file, const char* what) {
        std::map<unsigned, CpuSet> named;
        for (unsigned cpu : files_.online.cpus()) {
            const std::string path = of_cpu(cpu, "topology/" + file);
            const auto set = read_twin(path, path + "_list");
            if (set && *set && (*set)->has(cpu)) named[cpu] = **set & files_.online;
        }
        return partition_of(named, what);
    }

    // Turns what each CPU says into disjoint groups. In a conflict, the lower CPU wins.
    std::vector<CpuSet> partition_of(const std::map<unsigned, CpuSet>& named, const char* what) {
        std::vector<CpuSet> groups;
        std::map<unsigned, std::size_t> group_of;
        CpuSet rest = files_.online;
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

    void check_caches() {
        std::map<unsigned, CpuSet> outermost;
        for (unsigned cpu : files_.online.cpus()) {
            const auto known = last_cache(cpu);
            if (!known) warn_cpu(cpu, known.error().text, "its caches are not known");
            if (!known || !*known) continue;
            files_.cache_known.add(cpu);
            if ((*known)->has(cpu)) outermost[cpu] = **known & files_.online;
        }
        files_.outermost = partition_of(outermost, "caches");
    }

    // The CPUs that share the last cache of CPU; empty if it has no caches. Error: a cache file is invalid.
    [[nodiscard]] Result<std::optional<CpuSet>> last_cache(unsigned cpu) const {
        std::optional<CpuSet> last;
        for (unsigned index = 0; index < 10; index++) {  // as many as hwloc reads
            const std::string folder = of_cpu(cpu, fmt::format("cache/index{}", index));
            auto set = read_twin(folder + "/shared_cpu_map", folder + "/shared_cpu_list");
            if (!set) return tl::unexpected(set.error());
            if (!*set) break;
            // The map is empty on ia64; hwloc then uses the core.
            if (!(*set)->empty() && !(*set)->has(cpu))
                return fail(folder + ": this CPU is not among those that share it");
            // hwloc reads level and type only from the first CPU of a cache, for all CPUs that share it.
            if (!(*set)->intersects(files_.cache_known))
                for (const auto& sane : {check(folder + "/level", {"1", "2", "3", "4", "5"}, "level"),
                                         check(folder + "/type", {"Data", "Instruction", "Unified"}, "type")})
                    if (!sane) return tl::unexpected(sane.error());
            last = std::move(*set);
        }
        return last;
    }

    // hwloc skips a cache of a level or type that it does not know. (The kernel omits those that it does not
    // know.)
    static Status check(const std::string& path, std::initializer_list<std::string_view> known,
                        const char* what) {
        const auto text = text_if_there(path);
        if (!text) return tl::unexpected(text.error());
        std::string_view line = *text ? std::string_view(**text) : "";
        if (line.ends_with('\n')) line.remove_suffix(1);
        if (*text && std::ranges::find(known, line) == known.end())
            return fail(fmt::format("{}: not a cache {}", path, what));
        return {};
    }

    std::string cpu_;
    std::string node_;
    CpuSet folders_;  // CPUs that have a folder
    CpuFiles files_;
    Warnings warnings_;
};

}  // namespace

std::vector<unsigned> numbered(const std::string& folder, std::string_view prefix) {
    std::vector<unsigned> out;
    for (const std::string& name : names_or_none(folder))
        if (name.starts_with(prefix) && name.size() > prefix.size() &&
            name.find_first_not_of("0123456789", prefix.size()) == std::string::npos)
            out.push_back(number_of<unsigned>(name.substr(prefix.size())).value_or(CpuSet::kMaxCpus));
    std::ranges::sort(out);
    return out;
}

Result<CpuFiles> read_cpu_files(const std::string& root) {
    return Reader(root).read();
}

std::string cpu_state(const Paths& paths) {
    std::string out;
    for (const char* file : {"online", "present", "possible", "isolated"})
        out += read_file(paths.cpus() + "/" + file).value_or("") + ";";
    return out;
}

}  // namespace wq
