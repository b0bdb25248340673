// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/known_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "base/cpu_set.h"
#include "base/file.h"
#include "base/text.h"
#include "machine/kworker.h"
#include "policy/rule_warnings.h"

namespace wq::ctl {
namespace {

// Workqueues of file systems that have no folder in sysfs.
constexpr std::pair<std::string_view, const char*> kOfFileSystem[] = {
    {"btrfs", "btrfs-*"},
    {"ceph", "ceph-*"},
    {"erofs", "erofs_*"},
    {"ext4", "ext4-rsv-conversion"},
    {"nfs", "nfsiod, rpciod, xprtiod"},
    {"nfs4", "nfsiod, rpciod, xprtiod"},
    {"xfs", "xfs-cil/*, xfs-blockgc/*"},
};

class Reader {
  public:
    Reader(const Paths& paths, const std::vector<Workqueue>& targets) : paths_(paths), targets_(targets) {}

    bool kworker(std::string_view name);
    bool device(const std::string& name);
    bool mount_point(const std::string& path);
    bool unseen(const std::string& name);
    KnownName out;

  private:
    [[nodiscard]] std::string blocks() const { return paths_.root + "/sys/class/block/"; }
    [[nodiscard]] std::string kernels_name(const std::string& name) const;
    [[nodiscard]] bool is_target(const std::string& name) const {
        return std::ranges::find(targets_, name, &Workqueue::name) != targets_.end();
    }
    bool only_default(const std::string& name);
    void workqueue(const std::string& name);
    void add_stack(const std::string& name, const char* direction, std::vector<std::string>& stack) const;
    [[nodiscard]] std::string number_of(const std::string& device) const;
    void take_targets_of(const std::string& number);

    const Paths& paths_;
    const std::vector<Workqueue>& targets_;
};

void Reader::workqueue(const std::string& name) {
    if (is_target(name))
        out.targets.push_back(name);
    else
        (void)only_default(name);
}

bool Reader::only_default(const std::string& name) {
    const std::string owner = why_only_default(name);
    if (owner.empty()) return false;
    out.text.push_back(fmt::format(
        "{} ({}) has no folder in /sys/devices/virtual/workqueue: only @default reaches it.", name, owner));
    return true;
}

bool Reader::unseen(const std::string& name) {
    constexpr std::string_view kPerCpu[] = {"events",      "events_freezable", "events_highpri",
                                            "events_long", "kblockd",          "mm_percpu_wq"};
    out.kind = "workqueue";
    if (std::ranges::find(kPerCpu, name) != std::end(kPerCpu)) {
        out.text.push_back(name + " is a per-CPU workqueue: it has no affinity scope.");
        return true;
    }
    if (!only_default(name)) return false;
    if (is_target(kDefaultTarget)) out.targets.emplace_back(kDefaultTarget);
    return true;
}

// "kworker/u16:3" is a worker of the unbound pool 16; "kworker/3:1H" of CPU 3, with nice -20;
// "kworker/R-NAME" the rescuer of a workqueue. "+NAME" follows while it runs work of NAME, "-NAME"
// afterwards.
bool Reader::kworker(std::string_view name) {
    constexpr std::string_view kKworker = "kworker/";
    if (!name.starts_with(kKworker)) return false;
    const std::string_view id = name.substr(kKworker.size());
    out.kind = "kworker";
    if (id.starts_with("R-")) {
        out.text.push_back(
            fmt::format("The rescuer of {}: it runs work when memory is short.", id.substr(2)));
        workqueue(std::string(id.substr(2)));
        return true;
    }
    const auto colon = id.find(':');
    const auto sign = id.find_first_of("+-");
    if (id.starts_with('u')) {
        out.text.push_back(
            fmt::format("A worker of the unbound pool {}. It serves every workqueue that has this pool: it "
                        "has no scope of "
                        "its own, the scopes of workqueues say which pool their work goes to.",
                        id.substr(1, colon - 1)));
        for (const Kworker& each : read_kworkers(paths_))
            if (each.name == name.substr(0, name.find_first_of("+-")))
                out.text.push_back(
                    fmt::format("It may run on CPUs {}.", cpus_of_task(paths_, each.pid).list()));
    } else {
        out.text.push_back(
            fmt::format("A worker of CPU {}. It serves per-CPU workqueues, which have no affinity scope.",
                        id.substr(0, colon)));
    }
    if (sign == std::string_view::npos) return true;
    const std::string work(id.substr(sign + 1));
    out.text.push_back(
        fmt::format("{} {}.", id[sign] == '+' ? "It runs work of" : "Last it ran work of", work));
    workqueue(work);
    return true;
}

// The name in /sys/class/block of a path, a link or a name; "" if it is none.
std::string Reader::kernels_name(const std::string& name) const {
    std::error_code none;
    const auto real = std::filesystem::canonical(paths_.of_user("/" + name), none);
    std::string last = none ? name.substr(name.rfind('/') + 1) : real.filename().string();
    if (exists(blocks() + last + "/dev") || last.starts_with("dm-")) return last;
    for (const std::string& each : names_or_none(blocks()))
        if (read_first_line(blocks() + each + "/dm/name") == last) return each;
    return "";
}

// Appends the devices below or above the device NAME ("slaves", "holders") that are not in STACK.
void Reader::add_stack(const std::string& name, const char* direction,
                       std::vector<std::string>& stack) const {
    if (std::ranges::find(stack, name) != stack.end()) return;
    stack.push_back(name);
    for (const std::string& next : names_or_none(blocks() + name + "/" + direction))
        add_stack(next, direction, stack);
}

// The number of DEVICE; ":3" of dm-3 if /sys does not have it.
std::string Reader::number_of(const std::string& device) const {
    const std::string number = read_first_line(blocks() + device + "/dev");
    return number.empty() && device.starts_with("dm-") ? ":" + device.substr(3) : number;
}

// The targets that have the number of a device in their names: kcryptd-254:0-1.
void Reader::take_targets_of(const std::string& number) {
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    for (const Workqueue& target : targets_) {
        const auto at = number.empty() ? std::string::npos : target.name.find(number);
        if (at == std::string::npos || at == 0) continue;
        const std::size_t end = at + number.size();
        const bool whole = (number[0] == ':' || !is_digit(target.name[at - 1])) &&
                           (end == target.name.size() || !is_digit(target.name[end]));
        if (whole && std::ranges::find(out.targets, target.name) == out.targets.end())
            out.targets.push_back(target.name);
    }
}

bool Reader::device(const std::string& name) {
    const std::string device = kernels_name(name);
    if (device.empty()) return false;
    out.kind = "block device";
    std::vector<std::string> below;
    std::vector<std::string> above;
    add_stack(device, "slaves", below);
    add_stack(device, "holders", above);
    std::vector<std::string> stack = below;
    stack.insert(stack.end(), above.begin() + 1, above.end());
    std::vector<std::string> named;
    for (const std::string& each : stack) {
        const std::string number = number_of(each);
        take_targets_of(number);
        named.push_back(number.empty() || number[0] == ':' ? each : fmt::format("{} ({})", each, number));
    }
    const auto list = [&](std::size_t from, std::size_t to) {
        return fmt::format("{}", fmt::join(named.begin() + static_cast<long>(from),
                                           named.begin() + static_cast<long>(to), ", "));
    };
    out.text.push_back(fmt::format("{} is the block device {}{}{}.", name, named.front(),
                                   below.size() == 1 ? "" : ", on " + list(1, below.size()),
                                   above.size() == 1 ? "" : ", below " + list(below.size(), stack.size())));
    out.text.push_back(out.targets.empty()
                           ? "No target has the number of one of these devices in its name."
                           : fmt::format("These targets serve it: {}.", fmt::join(out.targets, ", ")));
    if (is_target("writeback"))
        out.text.emplace_back("The target writeback writes the dirty pages of all devices.");
    for (const std::string& each : stack) (void)only_default(each);
    return true;
}

// Finds the mount of PATH in /proc/self/mountinfo, see proc_pid_mountinfo(5).
bool Reader::mount_point(const std::string& path) {
    std::istringstream mounts(read_file(paths_.proc() + "/self/mountinfo", 1U << 20U).value_or(""));
    std::string type;
    std::string source;
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream words(line);
        std::string word;
        for (int i = 0; i < 5; i++) words >> word;  // the fifth is the mount point
        if (word != path) continue;
        while (words >> word && word != "-") {
        }
        words >> type >> source;  // the last of several mounts is the one that is seen
    }
    if (type.empty()) return false;
    out.text.push_back(fmt::format("{} is {} on {}.", path, type, source));
    if (source.starts_with("/dev/")) (void)device(source);
    out.kind = "mount point";
    for (const auto& [name, workqueues] : kOfFileSystem)
        if (name == type)
            out.text.push_back(
                fmt::format("Only @default reaches the workqueues of {}: {}.", type, workqueues));
    return true;
}

}  // namespace

std::optional<KnownName> known_name(const Paths& paths, const std::vector<Workqueue>& targets,
                                    const std::string& name) {
    Reader reader(paths, targets);
    const std::string path = name.size() > 1 && name.ends_with('/') ? name.substr(0, name.size() - 1) : name;
    if (reader.kworker(name) || reader.unseen(name) || reader.mount_point(path) || reader.device(name))
        return std::move(reader.out);
    return std::nullopt;
}

}  // namespace wq::ctl
