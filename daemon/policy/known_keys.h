// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wq {

// Where a policy may have KEY: "[daemon]", "[[workqueue]]", "when of [[host]]", "the top level"; nothing
// where there is no such key.
std::vector<std::string> homes_of(std::string_view key);

}  // namespace wq
