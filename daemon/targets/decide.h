// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <set>
#include <string>

#include "policy/policy.h"
#include "targets/conditions.h"
#include "targets/target.h"

namespace wq {

// What the experiments say about the targets that wait for a verdict.
struct Waiting {
    std::string why = "waiting for a comparison";  // why no pair is measured
    std::string unjudged = {};                     // why no comparison can be measured here; "" if they can
    std::set<std::string> compared = {};           // the targets whose dense comparisons are measured now
};

// What all targets of one pass have in common.
struct Circumstances {
    std::string observing = {};     // why nothing is written; "" if the policy is followed
    std::string pods_unknown = {};  // why nothing new is set; "" if the pods are known
    Waiting waiting = {};
};

// What is to be done about one target.
struct Wish : Shown {
    std::optional<std::string> word = {};  // empty: its baseline
    std::optional<bool> strict = {};       // empty: unchanged
    bool hands_off = false;                // nothing is written, whatever the target holds
    bool lacks_scope = false;              // its rule names a scope that this kernel does not have

    [[nodiscard]] const Shown& shown() const { return *this; }
    // Whether the files of ITEM have to change, according to the last look.
    [[nodiscard]] bool sets(const Managed& item) const;
    // Whether the wish is a word to write, and not the baseline.
    [[nodiscard]] bool wants() const { return word && !hands_off; }
};

// Decides what TARGET should hold, and which state and reason are shown. Pure.
Wish decide(const Target& target, const Circumstances& all);

// State and reason of a target that an order holds, whose entry is ENTRY.
Shown held_by_order(const Owned& entry);
// State and reason of ITEM while it is left to an external writer.
Shown left_to_writer(const Managed& item);

// A wish for the baseline, and one to write nothing.
Wish baseline(State state, std::string reason);
Wish hands_off(Shown shown);

// State and reason of ITEM as it was found, before WISH is carried out. UNSAVED: Reconciler::unsaved(). Pure.
Shown as_found(const Managed& item, const Wish& wish, const std::string& unsaved);

}  // namespace wq
