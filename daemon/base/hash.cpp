// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace wq {

std::uint64_t hash_of(std::string_view text) {
    const char* data = text.data();
    return data == nullptr ? XXH64("", 0, 0) : XXH64(data, text.size(), 0);
}

}  // namespace wq
