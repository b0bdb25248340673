// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/kernel_info.h"

#include <fmt/format.h>
#include <algorithm>

namespace wq {

bool KernelInfo::has(Scope scope) const {
    return std::find(scopes.begin(), scopes.end(), scope) != scopes.end();
}

std::string lacks_scopes(const KernelInfo& kernel) {
    if (!kernel.scopes.empty()) return "";
    const std::string which = kernel.release.empty() ? "this kernel" : "Linux " + kernel.release;
    return fmt::format("{} has no affinity scopes: 6.6 or later is needed", which);
}

}  // namespace wq
