// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"

namespace wq::ctl {

// Checks whether write_output() could write to PATH now, so that a mistyped name does not cost a long run.
Status check_output(const std::string& path);

}  // namespace wq::ctl
