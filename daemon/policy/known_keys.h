// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wq {

// The places where a policy may have KEY, as text: "in [daemon]", "in when of [[host]]", "at the top level".
// Empty if there is no such key.
std::vector<std::string> homes_of(std::string_view key);

}  // namespace wq
