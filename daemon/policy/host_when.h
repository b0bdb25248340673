// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "machine/host_facts.h"
#include "policy/toml_table.h"

namespace wq {

// The conditions of a host table: `when = { arch = "aarch64", llc_cores = ">=16", canary = "5%" }`.
class HostWhen {
  public:
    // Reads WHEN. A mistake is reported as an error of its file.
    static HostWhen read(TomlTable& when);

    // Why the host table NAME does not apply to a host with FACTS: a line for each condition that is false
    // or whose fact is not known. Empty if all conditions are true.
    [[nodiscard]] std::vector<std::string> misses(const HostFacts& facts, const std::string& name) const;

  private:
    // Returns "" if the condition is true, else the reason.
    using Condition = std::function<std::string(const HostFacts& facts, const std::string& name)>;
    void add_glob(TomlTable& when, const std::string& key,
                  std::vector<std::string> (*fact)(const HostFacts&));
    void add_number(TomlTable& when, const std::string& key, std::optional<unsigned> HostFacts::*fact);
    void add_flag(TomlTable& when, const std::string& key, std::optional<bool> HostFacts::*fact);
    void add_feature(TomlTable& when);
    void add_kernel(TomlTable& when);
    void add_canary(TomlTable& when);

    std::vector<Condition> conditions_;
};

}  // namespace wq
