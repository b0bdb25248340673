// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "model/kernel_info.h"

namespace wq {

// The message for a kernel without affinity scopes, on which no scope can be set; "" for other kernels.
std::string lacks_scopes(const KernelInfo& kernel);

}  // namespace wq
