// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/read_swap.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"

namespace wq {
namespace {

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
