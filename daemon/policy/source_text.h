// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "policy/policy_error.h"

namespace wq {

// Limits for the size of a policy file and the length of a line.
inline constexpr std::size_t kMaxPolicyFile = 1 << 20;
inline constexpr std::size_t kMaxPolicyLine = 4096;

// A place in a file. Both numbers count from 1, columns in bytes. 0 = the whole file.
struct Place {
    unsigned line = 0;
    unsigned column = 0;

    friend bool operator==(const Place&, const Place&) = default;
};

// The text of one policy file. Converts offsets to places, and places to errors.
class SourceText {
  public:
    SourceText(std::string file, std::string text);

    [[nodiscard]] const std::string& file() const { return file_; }
    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] std::size_t lines() const { return starts_.size(); }
    // Line NUMBER without its line end; empty if there is no such line.
    [[nodiscard]] std::string_view line(std::size_t number) const;
    [[nodiscard]] Place place_of(std::size_t offset) const;
    [[nodiscard]] PolicyError error(Place place, std::string message) const;

  private:
    std::string file_;
    std::string text_;
    std::vector<std::size_t> starts_;  // offset of each line
};

// Reads a policy file. A link to /dev/null is read as empty. Returns one error if the file cannot be read,
// is not a regular file, is too large, or is writable by everyone, or if its folder is writable by everyone
// without the sticky bit.
tl::expected<SourceText, PolicyErrors> read_policy_file(const std::string& path);

}  // namespace wq
