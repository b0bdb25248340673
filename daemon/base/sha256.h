// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wq {

using Digest = std::array<std::uint8_t, 32>;

// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for names that must not be recoverable.
Digest sha256(std::string_view text);
Digest hmac_sha256(std::string_view key, std::string_view text);

}  // namespace wq
