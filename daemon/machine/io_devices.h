// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wq {

// Devices of this machine whose work a driver option can move off its workqueue, or to an unbound one.
struct IoDevices {
    std::vector<std::string> nvme_tcp;     // controllers: "nvme0"
    std::optional<bool> nvme_tcp_unbound;  // whether nvme_tcp_wq is unbound; empty: no such module or option
    std::vector<std::string> crypt;        // names of dm-crypt mappings
};

}  // namespace wq
