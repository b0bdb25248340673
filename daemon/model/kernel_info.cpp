// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/kernel_info.h"

#include <algorithm>

namespace wq {

bool KernelInfo::has(Scope scope) const {
    return std::find(scopes.begin(), scopes.end(), scope) != scopes.end();
}

}  // namespace wq
