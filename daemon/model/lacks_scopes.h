// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "model/kernel_info.h"

namespace wq {

// The one line to say on a kernel without affinity scopes, where nothing can be done; "" on others.
std::string lacks_scopes(const KernelInfo& kernel);

}  // namespace wq
