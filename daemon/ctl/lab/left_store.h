// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace wq::ab {

// A file of /sys or /proc that holds, or may hold, the value of an arm.
struct LeftFile {
    std::string path;               // absolute, without links
    std::string original;           // its whole content before the first write
    std::vector<std::string> ours;  // other contents that our writes may have caused
    // Any other content may also be ours: a value was written, or is about to be, and it is not yet known how
    // the kernel shows it.
    bool any = false;
};

// An arm of commands whose `do` ran or is about to run.
struct LeftArm {
    std::string name;
    std::string undo;
    bool failed = false;  // `undo` failed
};

// What a comparison must restore.
using Left = std::variant<LeftFile, LeftArm>;

// /run/wq-tuned/ab.json: what the comparison that holds the lock, or the last one, must restore. Scopes are
// in baseline.json.
class LeftStore {
  public:
    explicit LeftStore(std::string path) : path_(std::move(path)) {}

    // Empty if there is nothing to restore. Errors: the file cannot be read, or is not ours (EBADMSG).
    [[nodiscard]] Result<std::optional<Left>> load() const;
    // Replaces what is on disk. Errors: EILSEQ for a text that is not UTF-8; errno.
    [[nodiscard]] Status save(const Left& left) const;
    [[nodiscard]] Status clear() const;

  private:
    std::string path_;
};

}  // namespace wq::ab
