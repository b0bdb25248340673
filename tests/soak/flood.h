// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace wq::test {

// Calls the daemon's GetStatus for this many microseconds, as fast as the system bus takes the calls, and
// wants no reply. Where JUNK is not 0, every second call has an argument of so many bytes, which the method
// does not take. Returns how many calls were sent; 0 where there is no bus.
unsigned long flood(std::uint64_t us, std::size_t junk);

}  // namespace wq::test
