// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_set.h"
#include "machine/host_facts.h"
#include "policy/policy.h"
#include "policy/policy_error.h"
#include "policy/rule_warnings.h"
#include "policy/source_text.h"
#include "policy/toml_table.h"

namespace wq {

// The CPUs that a cpumask of the policy names (empty if it names none), and the place of the value.
struct PlacedMask {
    CpuSet cpus;
    bool of_default = false;  // of [default_mask]: the last one replaces the others
    const SourceText* text = nullptr;
    Place place;
};

// Adds LATER, the masks of a later source, to MASKS.
void add_masks(std::vector<PlacedMask>& masks, const std::vector<PlacedMask>& later);

// Whether any of MASKS names CPUs.
bool names_cpus(const std::vector<PlacedMask>& masks);

// Returns an error for each of MASKS that is not valid on a host with CPUS: it names CPUs that are not
// possible there, or that are isolated. The kernel would silently drop the former (kernel/workqueue.c,
// apply_wqattrs_prepare()) and run unbound work on the latter. No errors if the possible CPUs are not known.
// Ordered like MASKS.
PolicyErrors errors_about(const std::vector<PlacedMask>& masks, const HostCpus& cpus);

// Reads the tables that both a file and a host table may have ([daemon], [shard], [default_scope], [judge],
// [default_mask], [metrics], [[workqueue]]) into POLICY, which already has the values of earlier sources. All
// constructor arguments must outlive this object.
class PolicyTables {
  public:
    PolicyTables(const SourceText& text, Policy& policy) : text_(text), policy_(policy) {}

    // TOP is a file or a host table. Does not check for unknown keys.
    void read(TomlTable& top);

    // The patterns of the rules that were read, with their places, from top to bottom.
    [[nodiscard]] const std::vector<PlacedMatch>& matches() const { return matches_; }
    // The CPUs that rules and [default_mask] name, with their places.
    [[nodiscard]] const std::vector<PlacedMask>& masks() const { return masks_; }
    // The place of washout, else of window, in [judge], without a message; empty if it has neither.
    [[nodiscard]] const std::optional<PolicyError>& times() const { return times_; }

  private:
    void read_rules(TomlTable& top);
    WorkqueueRule read_rule(TomlTable& table);
    std::vector<std::string> read_match(TomlTable& table);
    void note_default_scope(const TomlTable& table);
    void note_mask(const TomlTable& table, const MaskWish& mask, bool of_default);
    void finish(TomlTable& table, const std::string& name);
    [[nodiscard]] Origin origin(Place place) const { return {text_.file(), place.line}; }

    const SourceText& text_;
    Policy& policy_;
    std::vector<PlacedMatch> matches_;
    std::vector<PlacedMask> masks_;
    std::optional<PolicyError> times_;
};

// The places where a policy may have KEY, as text: "in [daemon]", "in when of [[host]]", "at the top level".
// Empty if there is no such key.
std::vector<std::string> homes_of(std::string_view key);

}  // namespace wq
