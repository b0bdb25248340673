// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstring>
#include <string>

namespace wq {

// The order of names for people: "nvme-2" before "nvme-10".
inline bool natural_less(const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) < 0;
}

}  // namespace wq
