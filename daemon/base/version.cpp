// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/version.h"

namespace wq {

const char* version() {
    return WQ_TUNED_VERSION;
}

}  // namespace wq
