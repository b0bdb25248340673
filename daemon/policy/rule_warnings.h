// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "model/policy.h"
#include "policy/policy_error.h"
#include "policy/source_text.h"

namespace wq {

// A rule's pattern, and where it stands.
struct PlacedMatch {
    std::string match;
    const SourceText* text = nullptr;
    Place place;
};

// What is wrong with rules that are tried in the order of MATCHES: a pattern that no workqueue's name can
// match, and one whose names an earlier pattern of the same file takes all: to take them from a file that is
// tried later is what drop-ins are for. In the order of MATCHES.
PolicyErrors warnings_about(const std::vector<PlacedMatch>& matches);

// Why no workqueue can be called as PATTERN, one of fnmatch(3), says; "" where one can.
std::string why_never_matches(const std::string& pattern);

// Whether LATER matches no name that EARLIER does not match: both are the same, or EARLIER is text and a
// star, or LATER is text alone. There are more such pairs, which are not found.
bool covers(const std::string& earlier, const std::string& later);

}  // namespace wq
