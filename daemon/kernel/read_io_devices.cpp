// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/read_io_devices.h"

#include <algorithm>

#include "base/file.h"
#include "base/natural_less.h"
#include "base/text.h"

namespace wq {
namespace {

// The workqueue shows the value in effect: a later write to the parameter does not change the workqueue.
std::optional<bool> nvme_tcp_unbound(const Paths& paths) {
    const std::string parameter = read_first_line(paths.root + "/sys/module/nvme_tcp/parameters/wq_unbound");
    if (parameter.empty()) return std::nullopt;
    const std::string per_cpu = read_first_line(paths.workqueues() + "/nvme_tcp_wq/per_cpu");
    return per_cpu.empty() ? parameter == "Y" : per_cpu == "0";
}

bool is_crypt(const std::string& device, const std::vector<std::string>& workqueues) {
    if (read_first_line(device + "/dm/uuid").starts_with("CRYPT-")) return true;
    const std::string number = read_first_line(device + "/dev");
    const std::string prefix = "kcryptd-" + number + "-";
    return !number.empty() &&
           std::ranges::any_of(workqueues, [&](const std::string& name) { return name.starts_with(prefix); });
}

}  // namespace

IoDevices read_io_devices(const Paths& paths) {
    IoDevices out;
    const std::string controllers = paths.root + "/sys/class/nvme";
    for (const std::string& name : names_or_none(controllers))
        if (read_first_line(controllers + "/" + name + "/transport") == "tcp")
            out.nvme_tcp.push_back(printable(name));
    out.nvme_tcp_unbound = nvme_tcp_unbound(paths);
    const auto workqueues = names_or_none(paths.workqueues());
    const std::string blocks = paths.root + "/sys/block";
    for (const std::string& name : names_or_none(blocks)) {
        const std::string device = blocks + "/" + name;
        if (name.starts_with("dm-") && is_crypt(device, workqueues))
            out.crypt.push_back(printable(read_first_line(device + "/dm/name")));
    }
    std::ranges::sort(out.crypt, natural_less);
    return out;
}

}  // namespace wq
