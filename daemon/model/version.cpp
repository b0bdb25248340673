// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/version.h"

namespace wq {

const char* version() {
    return WQ_TUNED_VERSION;
}

}  // namespace wq
