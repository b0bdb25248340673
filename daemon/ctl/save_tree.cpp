// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/topology_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "machine/host_facts.h"

namespace wq {
namespace {
namespace fs = std::filesystem;

// Masks, and lists for kernels without them.
constexpr std::array kFiles = {
    "/sys/devices/system/cpu/{online,present,possible,isolated,smt/control}",
    "/sys/devices/system/cpu/cpu[0-9]*/online",
    "/sys/devices/system/cpu/cpu[0-9]*/topology/{thread_siblings,core_siblings,cluster_cpus}{,_list}",
    "/sys/devices/system/cpu/cpu[0-9]*/cache/index[0-9]*/{level,type,size,shared_cpu_map,shared_cpu_list}",
    "/sys/devices/system/node/node[0-9]*/{cpumap,cpulist}",
    "/sys/module/workqueue/parameters/*",
    "/sys/devices/virtual/workqueue/*",
    "/sys/devices/virtual/workqueue/*/*"};
// Those that machine/kernel_info.cpp needs, and isolation.
constexpr std::array<std::string_view, 7> kOptions = {"l1tf=",     "maxcpus=",   "mitigations=", "workqueue.",
                                                      "isolcpus=", "nohz_full=", "wq_tuned="};

class Saver {
  public:
    Saver(const Paths& from, std::string to) : from_(from), to_(std::move(to)) {}

    Status save() {
        for (const char* pattern : kFiles)
            for (const std::string& path : matches(pattern))
                if (!path.ends_with("/uevent") && fs::is_regular_file(from_.root + path)) copy(path);
        // An offline CPU may have no file.
        for (const std::string& cpu : matches("/sys/devices/system/cpu/cpu[0-9]*")) make_folder(cpu);
        save_proc();
        return std::move(result_);
    }

  private:
    // The paths below FROM that match PATTERN.
    [[nodiscard]] std::vector<std::string> matches(const std::string& pattern) const {
        std::string whole;
        for (const char c : from_.root) {
            if (std::string_view("*?[]{},\\").find(c) != std::string_view::npos) whole += '\\';
            whole += c;
        }
        whole += pattern;
        glob_t found = {};
        std::vector<std::string> out;
        if (::glob(whole.c_str(), GLOB_BRACE, nullptr, &found) == 0)
            for (std::size_t i = 0; i < found.gl_pathc; i++)
                out.emplace_back(found.gl_pathv[i] + from_.root.size());
        ::globfree(&found);
        return out;
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

    void copy(const std::string& path) {
        struct stat info = {};
        const std::string source = from_.root + path;
        if (const auto text = read_file(source); text && ::stat(source.c_str(), &info) == 0)
            write(path, *text, info.st_mode & 0777);
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
