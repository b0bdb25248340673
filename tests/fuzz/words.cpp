// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Everything that is parsed from one short line: options, conditions, values of a policy, scope files.
#include <algorithm>
#include <string>

#include "counters/counter_table.h"
#include "evidence/verdicts.h"
#include "fuzz.h"
#include "machine/workqueue.h"
#include "policy/quantity.h"

using wq::fuzz::require;

template <class T>
static bool accepted(const wq::Result<T>& value) {
    require(value || !value.error().text.empty(), "what is refused has a reason");
    return value.has_value();
}

static void check_scopes(std::string_view text) {
    if (const auto file = wq::parse_scope_file(text); accepted(file)) {
        require(!file->word.empty() && file->word.find_first_of(" \n") == std::string::npos,
                "a word is one word");
        const auto again = wq::parse_scope_file(file->word);
        require(again && again->word == file->word, "a word reads as itself");
    }
    const auto scopes = wq::parse_scopes(text);
    if (!accepted(scopes)) return;
    require(!scopes->empty() && std::ranges::is_sorted(*scopes), "scopes are finest first");
    std::string back;
    for (const wq::Scope scope : *scopes) back += (back.empty() ? "" : ",") + std::string(name_of(scope));
    require(wq::parse_scopes(back).value() == *scopes, "scopes print back and parse to the same");
}

static void check_quantities(std::string_view text) {
    if (const auto time = wq::parse_duration(text); accepted(time)) {
        require(time->count() >= 0 && *time <= wq::kMaxDuration, "times have bounds");
        require(wq::parse_duration(wq::text_of(*time)).value() == *time,
                "times print back and parse to the same");
    }
    if (const auto share = wq::parse_percentage(text); accepted(share))
        require(*share >= 0 && *share <= 1, "a share is at most the whole");
    if (const auto hours = wq::parse_hours(text); accepted(hours))
        require(hours->begin < 1440 && hours->end <= 1440 && hours->begin != hours->end,
                "hours are of a day");
}

static void check_settings(std::string_view text) {
    if (const auto alpha = wq::parse_alpha(text); accepted(alpha))
        require(*alpha > 0 && *alpha <= wq::kMaxAlpha, "alpha has bounds");
    if (const auto pairs = wq::parse_count<unsigned, wq::kMaxPairs>(text); accepted(pairs))
        require(*pairs >= 1 && *pairs <= wq::kMaxPairs, "pairs have bounds");
}

static void check_numbers(std::string_view text) {
    const wq::Numbers numbers = wq::leading_numbers(text);
    (void)accepted(wq::in_range(numbers, text, true));
    (void)accepted(wq::in_range({8}, text, false));
}

FUZZ_TARGET(words) {
    check_scopes(text);
    check_quantities(text);
    check_settings(text);
    check_numbers(text);
    const std::string name(text);
    (void)wq::find_counter(name);
    require(wq::class_of(wq::class_of(name)) == wq::class_of(name), "a class is of its own class");
}
