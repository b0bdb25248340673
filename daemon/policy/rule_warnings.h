// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"
#include "policy/policy_error.h"
#include "policy/source_text.h"

namespace wq {

// A rule's pattern and its place.
struct PlacedMatch {
    std::string match;
    const SourceText* text = nullptr;
    Place place;
    bool expires = false;
};

struct PlacedPattern {
    std::string pattern;
    Origin rule;
};

// Warnings about rules that are tried in the order of MATCHES: patterns that match no valid workqueue name,
// and patterns that can never decide because an earlier pattern of the same file matches all their names. An
// earlier pattern of another file is fine: this is the purpose of drop-ins. An earlier pattern that expires
// is also fine. Ordered like MATCHES.
PolicyErrors warnings_about(const std::vector<PlacedMatch>& matches);

// Why the fnmatch(3) pattern PATTERN matches no name of a target, and what to write instead; "" if it can
// match one.
std::string why_never_matches(const std::string& pattern);

// What is in force although it cannot be meant, as of the last expire() of POLICY: [default_scope] sets a
// scope first, and a rule leaves workqueues that follow it.
PolicyErrors warnings_of(const Policy& policy);

// The patterns of rules in force that can match, but match none of NAMES, the workqueues of a machine.
std::vector<PlacedPattern> patterns_without_match(const Policy& policy,
                                                  const std::vector<std::string>& names);

// Whether EARLIER matches every name that LATER matches. Detects three cases: the patterns are equal,
// EARLIER is text and a star, or LATER is only text. Other cases are not detected.
bool covers(const std::string& earlier, const std::string& later);

// The unbound workqueues that have no folder in sysfs: only the target @default reaches them, and no rule
// does. What NAME, or all names that the glob NAME can mean, belong to: "NFS", "btrfs". "": none of these.
std::string why_only_default(const std::string& name);

}  // namespace wq
