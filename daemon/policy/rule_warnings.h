// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "model/policy.h"
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

// Warnings about rules that are tried in the order of MATCHES: patterns that match no valid workqueue name,
// and patterns that can never decide because an earlier pattern of the same file matches all their names. An
// earlier pattern of another file is fine: this is the purpose of drop-ins. An earlier pattern that expires
// is also fine. Ordered like MATCHES.
PolicyErrors warnings_about(const std::vector<PlacedMatch>& matches);

// Why the fnmatch(3) pattern PATTERN matches no valid workqueue name; "" if it can match one.
std::string why_never_matches(const std::string& pattern);

// Whether EARLIER matches every name that LATER matches. Detects three cases: the patterns are equal,
// EARLIER is text and a star, or LATER is only text. Other cases are not detected.
bool covers(const std::string& earlier, const std::string& later);

}  // namespace wq
