// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>

namespace wq::test {

// What RUN returns in a process that is not root's, since root may read and write everything. At most 4096
// bytes.
std::string as_nobody(const std::function<std::string()>& run);

}  // namespace wq::test
