// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace wq::ab {

// Files of /sys and /proc that hold a value.
class ValueFiles {
  public:
    ValueFiles() = default;
    ValueFiles(const ValueFiles&) = delete;
    ValueFiles& operator=(const ValueFiles&) = delete;
    virtual ~ValueFiles() = default;

    [[nodiscard]] virtual Result<std::string> read(const std::string& path) const = 0;
    virtual Status write(const std::string& path, const std::string& value) = 0;
};

class KernelValueFiles : public ValueFiles {
  public:
    // Returns the whole content of PATH. Errors: errno; EFBIG for more than kMaxFile bytes.
    [[nodiscard]] Result<std::string> read(const std::string& path) const override;
    // Writes VALUE with one write(2), without a newline, because some parameters would store it. Writes an
    // empty value as a newline, because the kernel ignores a write of no bytes. Errors: errno; EIO for a
    // short write.
    Status write(const std::string& path, const std::string& value) override;
};

// Returns the value to write for CONTENT: the word in brackets of "mq-deadline [none]", else the text without
// trailing newlines.
std::string value_in(std::string_view content);

// Whether two contents of a file have the same value. If one choice is in brackets, the others are ignored,
// because they change when a module is loaded.
bool is_same_value(std::string_view a, std::string_view b);

// Writes the value that PATH had when its content was ORIGINAL. Errors: it has another value afterwards;
// errno.
Status put_value_back(ValueFiles& files, const std::string& path, const std::string& original);

// PATH below ROOT ("" is the machine) without links. Errors: it is not absolute (EINVAL), is not a file
// (EINVAL), is outside of /sys and /proc (EPERM), or errno.
Result<std::string> resolve_value_file(const std::string& root, const std::string& path);

}  // namespace wq::ab
