// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>

#include "model/policy.h"
#include "policy/toml_table.h"

namespace wq {

// Reads the [judge] of one file after another into POLICY, which must outlive it.
class JudgeReader {
  public:
    explicit JudgeReader(Policy& policy) : policy_(policy) {}

    // TABLE is of the next source, in the file whose text is TEXT. Its other keys are left to the caller.
    void read(TomlTable& table, const SourceText& text);
    // The same, to go on with OTHER, which has what this one has read.
    [[nodiscard]] JudgeReader over(Policy& other) const;
    // What is wrong with the whole, each value being right by itself: after the last source, and only if no
    // value was refused. Each has the place of the key that was set last.
    [[nodiscard]] PolicyErrors contradictions() const;

  private:
    // Where a key was set; a source's number orders, 0 is the built-in default.
    struct Setting {
        std::string key;
        unsigned source = 0;
        PolicyError place = {};  // without a message
    };

    [[nodiscard]] Setting setting(const std::string& key) const;
    [[nodiscard]] Setting latest(std::initializer_list<const char*> keys) const;
    [[nodiscard]] std::optional<Setting> washout_too_long() const;
    [[nodiscard]] std::optional<Setting> too_few_pairs() const;

    Policy& policy_;
    unsigned sources_ = 0;
    std::map<std::string, Setting> settings_;
};

}  // namespace wq
