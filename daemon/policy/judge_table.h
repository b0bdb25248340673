// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <optional>
#include <string>

#include "model/policy.h"
#include "policy/toml_table.h"

namespace wq {

// Reads the [judge] tables of several files into POLICY, which must outlive this object.
class JudgeReader {
  public:
    explicit JudgeReader(Policy& policy) : policy_(policy) {}

    // Reads TABLE of the next source, whose file has the text TEXT. Does not check for unknown keys.
    void read(TomlTable& table, const SourceText& text);
    // A copy of this reader that writes to OTHER, which must have the same values.
    [[nodiscard]] JudgeReader over(Policy& other) const;
    // Errors in the combination of values. Call it after the last source, and only if every single value was
    // valid. Each error has the place of the key that was set last.
    [[nodiscard]] PolicyErrors contradictions() const;

  private:
    // Where a key was set. Sources are numbered in order; 0 is the built-in default.
    struct Setting {
        std::string key;
        unsigned source = 0;
        PolicyError place = {};  // without a message
    };

    [[nodiscard]] Setting setting(const std::string& key) const;
    [[nodiscard]] std::optional<Setting> washout_too_long() const;

    Policy& policy_;
    unsigned sources_ = 0;
    std::map<std::string, Setting> settings_;
};

}  // namespace wq
