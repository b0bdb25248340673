// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/save_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "machine/cpu_files.h"
#include "machine/host_facts.h"

namespace wq {
namespace {
namespace fs = std::filesystem;

// With masks or, where the kernel has none, lists.
constexpr std::array kOfCpu = {"topology/thread_siblings",     "topology/core_siblings",
                               "topology/cluster_cpus",        "topology/core_id",
                               "topology/physical_package_id", "online"};
constexpr std::array kOfCache = {"level", "type", "size", "shared_cpu_map", "shared_cpu_list"};
// Those that holds_back() of kernel_info.cpp and KernelInfo need, and isolation.
constexpr std::array<std::string_view, 7> kOptions = {"l1tf=",     "maxcpus=",   "mitigations=", "workqueue.",
                                                      "isolcpus=", "nohz_full=", "wq_tuned="};

class Saver {
  public:
    Saver(const Paths& from, std::string to) : from_(from), to_(std::move(to)) {}

    Status save() {
        for (const char* name : {"online", "present", "possible", "isolated", "smt/control"})
            copy(std::string("/sys/devices/system/cpu/") + name);
        each("/sys/devices/system/cpu", "cpu", [&](const std::string& cpu) { save_cpu(cpu); });
        each("/sys/devices/system/node", "node", [&](const std::string& node) {
            copy(node + "/cpumap");
            copy(node + "/cpulist");
        });
        for (const std::string& name : names_or_none(from_.parameters()))
            copy("/sys/module/workqueue/parameters/" + name);
        copy_folder("/sys/devices/virtual/workqueue");
        for (const std::string& name : names_or_none(from_.workqueues()))
            copy_folder("/sys/devices/virtual/workqueue/" + name);
        save_proc();
        return std::move(result_);
    }

  private:
    // Calls USE with the path of each entry PREFIX<number> of FOLDER.
    template <class Use>
    void each(const std::string& folder, std::string_view prefix, Use use) {
        for (const unsigned number : numbered(from_.root + folder, prefix))
            use(fmt::format("{}/{}{}", folder, prefix, number));
    }

    void save_cpu(const std::string& cpu) {
        make_folder(cpu);  // an offline CPU may have no file
        for (const char* name : kOfCpu)
            if (!copy(cpu + "/" + name)) copy(fmt::format("{}/{}_list", cpu, name));
        each(cpu + "/cache", "index", [&](const std::string& cache) {
            for (const char* name : kOfCache) copy(cache + "/" + name);
        });
    }

    void save_proc() {
        const std::string release = read_first_line(from_.osrelease());
        write("/proc/sys/kernel/osrelease", release + "\n");
        write("/proc/sys/kernel/arch", read_arch(from_) + "\n");
        write("/proc/cmdline", options() + "\n");
        write("/proc/cpuinfo", read_first_cpuinfo(from_) + "\n");
        // Instead of the kernel's configuration or its types. They matter where a core is in a cluster.
        const SchedLevels levels = fs::exists(to_ + "/sys/devices/system/cpu/cpu0/topology/cluster_cpus")
                                       ? read_sched_levels(from_)
                                       : SchedLevels{};
        if (!levels.clusters || !levels.mc || release.empty()) return;
        write("/boot/config-" + release,
              fmt::format("CONFIG_SMP=y\nCONFIG_SCHED_CLUSTER={}\nCONFIG_SCHED_MC={}\n",
                          *levels.clusters ? "y" : "n", *levels.mc ? "y" : "n"));
    }

    [[nodiscard]] std::string options() const {
        std::istringstream words(read_first_line(from_.cmdline()));
        std::vector<std::string> out;
        for (std::string word; words >> word;)
            if (word.find("nosmt") != std::string::npos ||
                std::ranges::any_of(kOptions,
                                    [&](std::string_view known) { return word.starts_with(known); }))
                out.push_back(word);
        return fmt::format("{}", fmt::join(out, " "));
    }

    void copy_folder(const std::string& path) {
        for (const std::string& name : names_or_none(from_.root + path))
            if (name != "uevent" && fs::is_regular_file(from_.root + path + "/" + name))
                copy(path + "/" + name);
    }

    // Whether there is such a file.
    bool copy(const std::string& path) {
        struct stat info = {};
        const std::string source = from_.root + path;
        if (::stat(source.c_str(), &info) != 0) return false;
        const auto text = read_file(source);
        if (text) write(path, *text, info.st_mode & 0777);
        return text.has_value();
    }

    void write(const std::string& path, const std::string& text, mode_t mode = 0644) {
        make_folder(fs::path(path).parent_path());
        if (!result_ || text.find_first_not_of('\n') == std::string::npos) return;
        const std::string full = to_ + path;
        const Fd fd(::open(full.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!fd) result_ = fail_errno(full, errno);
        if (fd) result_ = write_all(fd.get(), text);
        if (fd && ::fchmod(fd.get(), mode | S_IRUSR) != 0) result_ = fail_errno(full, errno);
    }

    void make_folder(const std::string& path) {
        std::error_code error;
        if (result_) fs::create_directories(to_ + path, error);
        if (error) result_ = fail(to_ + path + ": " + error.message(), error.value());
    }

    const Paths& from_;
    std::string to_;
    Status result_;
};

}  // namespace

Status save_tree(const Paths& from, const std::string& dir) {
    std::error_code error;
    if (fs::exists(dir, error) && !(fs::is_directory(dir, error) && fs::is_empty(dir, error)))
        return fail(dir + ": exists and is not an empty folder", EEXIST);
    return Saver(from, dir).save();
}

}  // namespace wq
