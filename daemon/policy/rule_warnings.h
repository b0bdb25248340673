// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.h"

namespace wq {

// Warnings about RULES, from files, in the order in which they are tried: patterns that match no valid
// workqueue name, and patterns that can never decide because the same file has the same pattern, or "*",
// before them in a rule that does not expire.
std::vector<std::pair<Origin, std::string>> warnings_about(const std::vector<WorkqueueRule>& rules);

// What is in force although it cannot be meant, as of the last expire() of POLICY: [default_scope] sets a
// scope first, and a rule leaves workqueues that follow it.
PolicyErrors warnings_of(const Policy& policy);

// A note for each pattern of a rule in force that could match, but matches none of NAMES, the workqueues of a
// machine.
std::vector<std::string> notes_about(const Policy& policy, const std::vector<std::string>& names);

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
