// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>

namespace wq {

// Why hwloc (2.x, with its own parser) cannot load the XML text TEXT, and what to run instead, as far as it
// can be told. Never empty.
std::string why_no_xml(std::string_view text);

}  // namespace wq
