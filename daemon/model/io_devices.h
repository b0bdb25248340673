// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wq {

// Devices of this machine whose work can take another way than the workqueue that it is on.
struct IoDevices {
    std::vector<std::string> nvme_tcp;     // controllers: "nvme0"
    std::optional<bool> nvme_tcp_unbound;  // nvme_tcp_wq is; empty: no such module, or it has no choice
    std::vector<std::string> crypt;        // mappings of dm-crypt, by name
};

}  // namespace wq
