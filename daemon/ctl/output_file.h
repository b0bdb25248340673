// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"

namespace wq::ctl {

// Whether write_output() could write to PATH now: what took minutes is not to be lost for a mistyped name.
Status check_output(const std::string& path);

}  // namespace wq::ctl
