// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace wq::bench {

inline constexpr std::uint64_t kBlock = 32 * 1024;  // bytes of a write, which is one work item of dm-crypt

struct LoadJob {
    std::string path;         // of a device
    std::string number = {};  // its number, "254:0"; "" if it is a file
    std::uint64_t bytes = 0;  // size of the area to write, from the start of the device
    unsigned writers = 1;
    unsigned depth = 1;  // writes in flight of each writer
    double settle = 0;   // seconds of writing before the measurement
    double seconds = 0;  // seconds of measured writing
};

// Results of the measured time. p50, p90, p99: time of a write, from io_submit() to its completion, in ns.
struct LoadFigures {
    double seconds = 0;
    std::uint64_t writes = 0;
    double p50 = 0;
    double p90 = 0;
    double p99 = 0;
};

// Writes to a device.
class Load {
  public:
    Load() = default;
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    virtual ~Load() = default;

    // Calls AT_EDGE at the start and at the end of the measurement. Errors: a write failed; EINTR for a
    // signal.
    virtual Result<LoadFigures> run(const LoadJob& job, const std::function<void()>& at_edge) = 0;
};

}  // namespace wq::bench
