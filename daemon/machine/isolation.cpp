// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/isolation.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <memory>
#include <sstream>

#include "base/file.h"
#include "base/text.h"

namespace wq {

CpuSet Isolation::cpus() const {
    CpuSet all = isolcpus | nohz_full;
    for (const Partition& partition : partitions)
        if (partition.type == "isolated") all |= partition.cpus;
    return all;
}

namespace {

constexpr unsigned kMostDeep = 16;
constexpr unsigned kMostCgroups = 10'000;

// Reads a list of CPUs. nohz_full contains "(null)" if the option was not given; that gives the empty set.
CpuSet list_in(const std::string& path) {
    return CpuSet::parse_list(read_first_line(path)).value_or(CpuSet{});
}

// Walks the cgroups. If a cgroup lacks a controller, those below it lack it too. Most hosts do not use
// cpusets, and the walk ends at the first level.
class Walk {
  public:
    Walk(std::string root, Isolation& out) : root_(std::move(root)), out_(out) {}

    void below(const std::string& cgroup, unsigned depth) {
        const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir((root_ + cgroup).c_str()), ::closedir);
        while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
            const std::string name = entry->d_name;
            if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
            if (depth == kMostDeep || ++seen_ > kMostCgroups) {
                out_.complete = false;
                return;
            }
            const std::string child = fmt::format("{}/{}", cgroup, name);
            if (look_at(child)) below(child, depth + 1);
        }
    }

  private:
    // Whether the cgroup has cpusets. "root invalid (...)" is not a partition.
    bool look_at(const std::string& cgroup) {
        const std::string file = root_ + cgroup + "/cpuset.cpus.partition";
        if (!exists(file)) return false;
        const std::string type = read_first_line(file);
        if (type != "root" && type != "isolated") return true;
        if (CpuSet cpus = list_in(root_ + cgroup + "/cpuset.cpus.effective"); !cpus.empty())
            out_.partitions.push_back({printable(cgroup), std::move(cpus), type});
        return true;
    }

    std::string root_;
    Isolation& out_;
    unsigned seen_ = 0;
};

CpuSet possible_cpus(const Paths& paths) {
    CpuSet out = list_in(paths.cpus() + "/possible");
    return out.empty() ? list_in(paths.cpus() + "/present") : out;
}

std::string isolated_by_cpusets(const Paths& paths) {
    return paths.cgroups() + "/cpuset.cpus.isolated";
}

// Adds the list in PATH, which may be missing. Returns false if PATH exists but cannot be read.
bool add_list(const std::string& path, CpuSet& out) {
    const auto text = read_if_there(path);
    if (text && *text) out |= CpuSet::parse_list((*text)->substr(0, (*text)->find('\n'))).value_or(CpuSet{});
    return text.has_value();
}

void add_stack(const std::string& blocks, const std::string& number, std::set<std::string>& out) {
    if (number.empty() || !out.insert(number).second) return;
    const std::string slaves = blocks + "/" + number + "/slaves";
    for (const std::string& name : names_or_none(slaves))
        add_stack(blocks, read_first_line(slaves + "/" + name + "/dev"), out);
}

// The number of a swap partition, or of the device that has the file system of a swap file.
std::string device_number(const Paths& paths, const std::string& file, const std::string& type) {
    if (type == "partition")
        return read_first_line(paths.root + "/sys/class/block/" + file.substr(file.rfind('/') + 1) + "/dev");
    struct stat about {};
    if (::stat(paths.of_user(file).c_str(), &about) != 0) return "";
    return fmt::format("{}:{}", major(about.st_dev), minor(about.st_dev));
}

}  // namespace

HostCpus read_boot_cpus(const Paths& paths) {
    return {possible_cpus(paths), list_in(paths.cpus() + "/isolated") | list_in(paths.cpus() + "/nohz_full")};
}

HostCpus read_cpus_now(const Paths& paths) {
    HostCpus out{possible_cpus(paths), {}};
    if (::access(isolated_by_cpusets(paths).c_str(), R_OK) != 0) {
        const Isolation now = read_isolation(paths);
        if (!now.complete) return {};
        out.isolated = now.cpus();
        return out;
    }
    for (const std::string& path :
         {paths.cpus() + "/isolated", paths.cpus() + "/nohz_full", isolated_by_cpusets(paths)})
        if (!add_list(path, out.isolated)) return {};
    return out;
}

Isolation read_isolation(const Paths& paths) {
    Isolation out;
    out.isolcpus = list_in(paths.cpus() + "/isolated");
    out.nohz_full = list_in(paths.cpus() + "/nohz_full");
    Walk(paths.cgroups(), out).below("", 0);
    std::ranges::sort(out.partitions, {}, &Partition::cgroup);
    // The kernel's list contains all isolated CPUs, also of cgroups that we did not walk, and those isolated
    // at boot.
    if (CpuSet rest = list_in(isolated_by_cpusets(paths)) - out.cpus(); !rest.empty())
        out.partitions.push_back({"", std::move(rest), "isolated"});
    return out;
}

std::set<std::string> swap_devices(const Paths& paths) {
    std::set<std::string> out;
    std::istringstream swaps(read_file(paths.proc() + "/swaps").value_or(""));
    std::string line, file, type;
    std::getline(swaps, line);  // the header
    while (std::getline(swaps, line)) {
        std::istringstream words(line);
        if (words >> file >> type)
            add_stack(paths.root + "/sys/dev/block", device_number(paths, file, type), out);
    }
    return out;
}

bool serves_swap(const std::string& name, const std::set<std::string>& devices) {
    return std::ranges::any_of(
        devices, [&](const std::string& device) { return name.starts_with("kcryptd-" + device + "-"); });
}

}  // namespace wq
