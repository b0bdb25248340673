// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace wq::test {

struct Flood {
    std::size_t junk = 0;  // bytes of an argument in every second call, which the method does not take
    bool unread = false;   // calls want replies, and nobody reads them; otherwise they want none
};

// Calls the daemon's GetStatus for US microseconds, as fast as the system bus takes the calls. Returns how
// many calls were sent; 0 if there is no bus.
unsigned long flood(std::uint64_t us, const Flood& kind);

}  // namespace wq::test
