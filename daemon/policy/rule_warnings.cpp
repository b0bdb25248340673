// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/rule_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "base/text.h"

namespace wq {
namespace {

constexpr const char* kSpecial = "*?[\\";  // in a pattern

// By glob, with their owners; of Linux 6.6 to 7.2.
constexpr std::pair<const char*, const char*> kInvisible[] = {
    {"events_unbound", "the kernel's shared workqueue"},
    {"async", "the kernel's asynchronous functions"},
    {"rpciod", "NFS"},
    {"xprtiod", "NFS"},
    {"nfsiod", "NFS"},
    {"nfsd*", "the NFS server"},
    {"btrfs-*", "btrfs"},
    {"ext4-rsv-conversion", "ext4"},
    {"erofs*", "erofs"},
    {"ceph-*", "ceph"},
    {"loop*", "loop devices"},
    {"nbd*", "network block devices"},
    {"xfs-blockgc/*", "XFS"},
    {"xfs-cil/*", "XFS"},
};

constexpr std::size_t kTelling = 3;  // letters before the first wildcard: "nfs*" means NFS, "n*" does not

// What regular expressions have, and globs do not.
constexpr std::string_view kRegular[] = {"\\d", "\\w", "\\S", ".*", ".+", "]+", "|"};

bool is_regular(const std::string& pattern) {
    const auto has = [&](std::string_view one) {
        const auto at = pattern.find(one);
        // "0000:01:00.*" is a PCI device in a glob.
        return at != std::string::npos && (one[0] != '.' || at < 3 || pattern[at - 3] != ':');
    };
    return pattern.starts_with('^') || pattern.ends_with('$') || std::ranges::any_of(kRegular, has);
}

bool has_braces(const std::string& pattern) {
    const auto open = pattern.find('{'), comma = pattern.find(',', open), close = pattern.find('}', comma);
    return open < comma && comma < close && close != std::string::npos;
}

// Why PATTERN is written in another language, or names what no rule reaches; "" if neither.
std::string why_never_matches(const std::string& pattern) {
    if (pattern.starts_with("kworker"))
        return "it names a thread; `wq-tunectl explain` tells the workqueues that a kworker serves";
    if (has_braces(pattern)) return "braces have no meaning in it: write a list, match = [\"...\", \"...\"]";
    if (is_regular(pattern))
        return "it is a regular expression, not a glob: `*` is any text, and match can be a list";
    if (const std::string owner = why_only_default(pattern); !owner.empty())
        return fmt::format("it is not in sysfs ({}); only @default reaches it, see [default_scope]", owner);
    return "";
}

constexpr std::size_t kLongestWord = 32;

// The Levenshtein distance, computed one table row at a time.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0U);
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string why_only_default(const std::string& name) {
    const bool tells = std::min(name.find_first_of(kSpecial), name.size()) >= kTelling;
    for (const auto& [glob, owner] : kInvisible)
        if (is_match(glob, name) || (tells && is_match(name, glob))) return owner;
    return "";
}

std::vector<std::pair<Origin, std::string>> warnings_about(const std::vector<WorkqueueRule>& rules) {
    std::vector<std::pair<Origin, std::string>> out;
    std::map<std::pair<std::string, std::string>, Origin> earlier;  // by file and pattern
    for (const WorkqueueRule& rule : rules)
        for (std::size_t i = 0; i < rule.match.size(); ++i) {
            const std::string& pattern = rule.match[i];
            const Origin& place = rule.match_origins[i];
            if (const auto why = why_never_matches(pattern); !why.empty())
                out.emplace_back(place, fmt::format("{} matches no workqueue: {}", in_quotes(pattern), why));
            auto first = earlier.find({place.file, "*"});
            if (first == earlier.end()) first = earlier.find({place.file, pattern});
            if (first != earlier.end())
                out.emplace_back(
                    place,
                    fmt::format("{} never applies: {} at {} comes first and matches the same names",
                                in_quotes(pattern), in_quotes(first->first.second), first->second.text()));
            else if (rule.expires.empty())
                earlier.emplace(std::pair(place.file, pattern), place);
        }
    return out;
}

PolicyErrors warnings_of(const Policy& policy) {
    PolicyErrors out;
    const auto& moved = policy.default_scope;
    if (!moved.manage || !moved.wish.sets_first()) return out;
    for (const WorkqueueRule& rule : policy.rules)
        if (!rule.expired && rule.wish.kind == ScopeWish::Kind::leave)
            out.push_back(
                {moved.origin.file, moved.origin.line, std::max(moved.origin.column, 1U),
                 fmt::format("[default_scope] at {} sets `{}`; `{}`, left by the rule at {}, follows it",
                             moved.origin.text(), moved.wish.text(),
                             printable(fmt::format("{}", fmt::join(rule.match, "`, `"))), rule.origin.text()),
                 ""});
    return out;
}

std::vector<std::string> notes_about(const Policy& policy, const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const WorkqueueRule& rule : policy.rules)
        for (const std::string& pattern : rule.match) {
            const auto matches = [&](const std::string& name) { return is_match(pattern, name); };
            if (!rule.expired && why_never_matches(pattern).empty() && pattern != "*" &&
                std::ranges::none_of(names, matches))
                out.push_back(printable(fmt::format("{}: note: {} matches no workqueue that this machine has",
                                                    rule.origin.text(), in_quotes(pattern))));
        }
    return out;
}

std::string nearest_word(std::string_view word, const std::vector<std::string_view>& words) {
    if (word.empty() || word.size() > kLongestWord || words.empty()) return "";
    const auto nearest = std::ranges::min_element(words, {}, [&](auto each) { return distance(word, each); });
    const std::size_t slips = distance(word, *nearest);
    if (slips == 2 && word[0] != nearest->front()) return "";  // "foo" is not "root"
    return slips <= 2 && slips < nearest->size() / 2 + 1 ? std::string(*nearest) : "";
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& words) {
    std::string lower(word);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::string nearest = nearest_word(lower, words);
    return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
}

std::string no_such_word(const std::string& given, std::string_view word,
                         const std::vector<std::string_view>& words) {
    return fmt::format("must be one of \"{}\", not {}{}", fmt::join(words, "\", \""), given,
                       suggestion(word, words));
}

std::string glob_of(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string glob_of_kind(const std::string& kind) {
    std::string out = glob_of(kind);
    for (auto at = out.find('#'); at != std::string::npos; at = out.find('#', at))
        out.replace(at, 1, "[0-9]*");
    return out;
}

}  // namespace wq
