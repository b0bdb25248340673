// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuzz.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace wq::fuzz {

void require(bool holds, std::string_view property) {
    if (holds) return;
    fmt::print(stderr, "does not hold: {}\n", property);
    std::abort();
}

test::TempTree& folder() {
    static test::TempTree tree;
    return tree;
}

}  // namespace wq::fuzz
