// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cerrno>
#include <string>

#include "base/result.h"

namespace wq {

// Silences libbpf while it exists, and keeps libbpf's first warning to explain the call that failed.
class BpfErrors {
  public:
    BpfErrors();

    // The error for WHAT, which failed with CODE (an errno of either sign), with the missing prerequisite in
    // one line.
    [[nodiscard]] tl::unexpected<Error> fail(const std::string& what, int code) const;
};

// Whether an error may be temporary, caused by something else on the machine. If so, the caller should not
// give up and should not try to load fewer programs.
inline bool passes(const Error& error) {
    return error.code == ENOMEM || error.code == EAGAIN || error.code == EINTR;
}

}  // namespace wq
