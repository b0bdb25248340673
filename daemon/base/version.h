// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace wq {

const char* version();  // "0.2.0"

}  // namespace wq
