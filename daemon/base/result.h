// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace wq {

// An error as a value. Each layer adds its context once with in(); the top layer logs the error once.
struct Error {
    int code = 0;      // errno, or 0 if no system call failed
    std::string text;  // "affinity_scope: writing 'smt': Invalid argument"

    // The same error with the context of the caller.
    [[nodiscard]] Error in(const std::string& where) const { return {code, where + ": " + text}; }
};

template <class T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

inline tl::unexpected<Error> fail(std::string text, int code = 0) {
    return tl::unexpected(Error{code, std::move(text)});
}

// WHAT followed by the text of errno CODE.
tl::unexpected<Error> fail_errno(const std::string& what, int code);

// A readable form of WHAT, the what() of a json::exception: "empty", "cut off" or "not JSON" if a text could
// not be parsed; else WHAT without the name of the exception: "key 'version' not found".
std::string json_error_text(std::string_view what);

}  // namespace wq
