// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/lacks_scopes.h"

#include <fmt/format.h>

namespace wq {

std::string lacks_scopes(const KernelInfo& kernel) {
    if (!kernel.scopes.empty()) return "";
    const std::string which = kernel.release.empty() ? "this kernel" : "Linux " + kernel.release;
    return fmt::format("{} has no affinity scopes: 6.6 or later is needed", which);
}

}  // namespace wq
