// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/result.h"

#include <system_error>

namespace wq {

tl::unexpected<Error> fail_errno(const std::string& what, int code) {
    return fail(what + ": " + std::generic_category().message(code), code);
}

}  // namespace wq
