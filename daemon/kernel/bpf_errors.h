// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cerrno>

#include "base/result.h"

namespace wq {

// libbpf prints as it goes. While one of these lives, it prints nothing, and its first complaint is kept to
// explain the failure of the call that caused it.
class BpfErrors {
  public:
    BpfErrors();

    // WHAT failed with CODE (an errno, either sign): what lacks, in one line.
    [[nodiscard]] tl::unexpected<Error> fail(const std::string& what, int code) const;
};

// Whether a failure may be another's fault, and not for good: then there is no sense in loading less, or in
// giving up.
inline bool passes(const Error& error) {
    return error.code == ENOMEM || error.code == EAGAIN || error.code == EINTR;
}

}  // namespace wq
