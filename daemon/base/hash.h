// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace wq {

// XXH64, seed 0: the same on every machine and in every version, since files and policies hold what comes of
// it. No defence against somebody who looks for collisions.
std::uint64_t hash_of(std::string_view text);

}  // namespace wq
