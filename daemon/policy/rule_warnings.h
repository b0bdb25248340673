// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.h"

namespace wq {

struct PlacedPattern {
    std::string pattern;
    Origin rule;
};

// Warnings about RULES, from files, in the order in which they are tried: patterns that match no valid
// workqueue name, and patterns that can never decide because an earlier pattern of the same file matches all
// their names. An earlier pattern of another file is fine: this is the purpose of drop-ins. An earlier
// pattern that expires is also fine.
std::vector<std::pair<Origin, std::string>> warnings_about(const std::vector<WorkqueueRule>& rules);

// Why the fnmatch(3) pattern PATTERN matches no name of a target, and what to write instead; "" if it can
// match one.
std::string why_never_matches(const std::string& pattern);

// What is in force although it cannot be meant, as of the last expire() of POLICY: [default_scope] sets a
// scope first, and a rule leaves workqueues that follow it.
PolicyErrors warnings_of(const Policy& policy);

// The patterns of rules in force that can match, but match none of NAMES, the workqueues of a machine.
std::vector<PlacedPattern> patterns_without_match(const Policy& policy,
                                                  const std::vector<std::string>& names);

// Whether EARLIER matches every name that LATER matches, where they are equal, EARLIER is plain text and a
// star, or LATER is plain text. Other cases are not detected.
bool covers(const std::string& earlier, const std::string& later);

// The unbound workqueues that have no folder in sysfs: only the target @default reaches them, and no rule
// does. What NAME, or all names that the glob NAME can mean, belong to: "NFS", "btrfs". "": none of these.
std::string why_only_default(const std::string& name);

// "; did you mean ...?" if WORD is probably a misspelling of one of WORDS, or "".
std::string suggestion(std::string_view word, const std::vector<std::string_view>& words);
// "must be one of "a", "b", not GIVEN", which is WORD where it is a string.
std::string no_such_word(const std::string& given, std::string_view word,
                         const std::vector<std::string_view>& words);
// The word of WORDS that WORD is probably a misspelling of, or "".
std::string nearest_word(std::string_view word, const std::vector<std::string_view>& words);

// A pattern that matches only TEXT.
std::string glob_of(const std::string& text);
// A pattern for the names of the class KIND ("kcryptd-#:#-#"), as far as fnmatch(3) can: a number is a digit
// followed by anything.
std::string glob_of_kind(const std::string& kind);

}  // namespace wq
