// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/result.h"

#include <system_error>

namespace wq {

tl::unexpected<Error> fail_errno(const std::string& what, int code) {
    return fail(what + ": " + std::generic_category().message(code), code);
}

std::string json_error_text(std::string_view what) {
    const auto has = [&](std::string_view part) { return what.find(part) != std::string_view::npos; };
    if (what.starts_with("[json.exception.parse_error.")) {
        if (has("parse an empty input")) return "empty";  // since 3.11
        if (has("unexpected end of input")) return has(" line 1, column 1:") ? "empty" : "cut off";
        return has("missing closing quote") ? "cut off" : "not JSON";
    }
    if (what.starts_with("[json.exception.") && has("] ")) what.remove_prefix(what.find("] ") + 2);
    return std::string(what);
}

}  // namespace wq
