// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "model/io_devices.h"

namespace wq {

// A setting outside of this program that takes work off its workqueue, or to another kind of it. Nothing says
// which is better here but a comparison.
struct Alternative {
    std::string option;                // "nvme_tcp.wq_unbound=Y", "no_read_workqueue"
    std::vector<std::string> devices;  // that it concerns; may be empty
    std::string speaks_for, against;
    std::string how;  // it is set
};

// Those that DEVICES have and that are not in effect, as far as can be known. It has no side effects.
std::vector<Alternative> alternatives(const IoDevices& devices);

}  // namespace wq
