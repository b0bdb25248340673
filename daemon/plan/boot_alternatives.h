// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "model/io_devices.h"

namespace wq {

// A setting outside of this program that moves work off its workqueue, or to another kind of workqueue. Only
// a comparison can tell which is better on this machine.
struct Alternative {
    std::string option;                // "nvme_tcp.wq_unbound=Y", "no_read_workqueue"
    std::vector<std::string> devices;  // affected devices; may be empty
    std::string speaks_for, against;
    std::string how;  // how to set `option`
};

// The alternatives for DEVICES that are not in effect, as far as we know. No side effects.
std::vector<Alternative> alternatives(const IoDevices& devices);

}  // namespace wq
