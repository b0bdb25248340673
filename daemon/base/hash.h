// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wq {

// XXH64, seed 0. Files and policies store the result, so it must be the same on every machine and in every
// version. It does not resist deliberate collisions.
std::uint64_t hash_of(std::string_view text);

using Digest = std::array<std::uint8_t, 32>;

// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for names that must not be recoverable.
Digest sha256(std::string_view text);
Digest hmac_sha256(std::string_view key, std::string_view text);

}  // namespace wq
