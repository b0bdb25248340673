// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wq {

using Digest = std::array<std::uint8_t, 32>;

// HMAC-SHA-256 (RFC 2104, FIPS 180-4), for names that must not be recoverable. KEY: at most 64 bytes.
Digest hmac_sha256(std::string_view key, std::string_view text);

}  // namespace wq
