// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace wq {

// The largest file of /sys or /proc that is read here. The kernel's own are at most a page, CPU lists aside.
inline constexpr std::size_t kMaxFile = 65536;

// The whole text of PATH. Errors: errno of open or read; EFBIG beyond LIMIT bytes. The path is in the error.
Result<std::string> read_file(const std::string& path, std::size_t limit = kMaxFile);

// As read_file(), or nothing where PATH is absent. Asked once more after an error, and absent
// is what is so both times: its reader may replace it.
Result<std::optional<std::string>> read_if_there(const std::string& path, std::size_t limit = kMaxFile);

// Replaces PATH: a temporary file beside it, fsync, rename, fsync of the directory. Mode 0644. After an error
// PATH is what it was, or, where it was the directory's fsync that failed, what it was to be.
Status replace_file(const std::string& path, const std::string& text);

// As replace_file(), for what need not outlive a crash of the machine: no fsync. Mode 0644 whatever the
// umask; of what stands under the temporary file's name nothing is followed or kept.
Status publish_file(const std::string& path, const std::string& text);

// Replaces PATH, which a user named and whose folder may be anybody's: a temporary file beside it that nobody
// could have made before, fsync, rename. The mode is that of the file that is replaced, and so are owner and
// group where we may, else 0666 without the umask. Errors: EEXIST where PATH is there and is no regular file;
// after any, PATH is what it was.
Status write_output(const std::string& path, const std::string& text);

}  // namespace wq
