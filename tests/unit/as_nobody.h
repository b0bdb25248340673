// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>

namespace wq::test {

// Calls RUN in a child process that does not run as root (root may read and write everything), and returns
// its result, at most 4096 bytes.
std::string as_nobody(const std::function<std::string()>& run);

}  // namespace wq::test
