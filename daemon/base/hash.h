// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace wq {

// XXH64, seed 0. Files and policies store the result, so it must be the same on every machine and in every
// version. It does not resist deliberate collisions.
std::uint64_t hash_of(std::string_view text);

}  // namespace wq
