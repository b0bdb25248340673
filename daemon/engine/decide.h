// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <set>
#include <string>

#include "engine/conditions.h"
#include "engine/target.h"
#include "model/policy.h"

namespace wq {

// What all targets of one pass have in common.
struct Circumstances {
    const Policy& policy;
    std::string observing = {};           // why nothing is written; "" if the policy is followed
    NamedOnly named_only = {};            // what is left alone unless a rule names it
    std::string pods_unknown = {};        // why nothing new is set; "" if the pods are known
    std::string waiting_why = {};         // why no pair is measured
    std::string unsaved = {};             // why baselines could not be saved; "" if they could
    std::set<std::string> compared = {};  // the targets whose dense comparisons are measured now
};

// What is to be done about one target.
struct Wish : Shown {
    std::optional<std::string> word = {};  // empty: its baseline
    std::optional<bool> strict = {};       // empty: as it is
    bool hands_off = false;                // nothing is written, whatever the target holds
    bool lacks_scope = false;              // its rule names a scope that this kernel does not have

    [[nodiscard]] const Shown& shown() const { return *this; }
    // Whether the files of TARGET, as it was last looked at, are to hold something else.
    [[nodiscard]] bool sets(const Target& target) const;
    // Whether that is a word of ours at all.
    [[nodiscard]] bool wants() const { return word && !hands_off; }
};

// From what is known of TARGET to what it shall hold, and what is shown meanwhile. ENTRY: its baseline, or
// nullptr. Pure.
Wish decide(const Target& target, const BaselineEntry* entry, const Circumstances& all);

// What is shown of TARGET while an external writer has it.
Shown left_to_writer(const Target& target);

// What is shown of TARGET as it was found, before anything is done about WISH. Pure.
Shown as_found(const Target& target, const BaselineEntry* entry, const Wish& wish, const Circumstances& all);

}  // namespace wq
