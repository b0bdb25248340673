// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/rule_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <list>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace wq {
namespace {

constexpr const char* kSpecial = "*?[\\";          // in a pattern
constexpr std::size_t kLongestWorkqueueName = 31;  // WQ_NAME_LEN - 1; 23 before Linux 6.9

// One element of a pattern.
enum class Element { literal, any, star, set, open_bracket, lone_backslash };
struct Piece {
    Element kind;
    std::string text;  // for a literal, the byte that it matches; else the source text
};

// The offset after the ] of the bracket expression at START of PATTERN; npos if it is not closed.
std::size_t set_end(std::string_view pattern, std::size_t start) {
    std::size_t at = start + 1;
    if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^')) ++at;
    for (const std::size_t first = at; at < pattern.size(); ++at) {
        if (pattern[at] == ']' && at > first) return at + 1;
        if (pattern[at] == '\\' && ++at == pattern.size()) break;
        const char kind = pattern[at] == '[' && at + 1 < pattern.size() ? pattern[at + 1] : ' ';
        if (kind != ':' && kind != '.' && kind != '=') continue;
        const auto close = pattern.find(std::string{kind, ']'}, at + 2);
        if (close != std::string_view::npos) at = close + 1;
    }
    return std::string_view::npos;
}

Piece next_piece(std::string_view pattern, std::size_t& at) {
    const std::size_t start = at++;
    switch (pattern[start]) {
        case '*':
            return {Element::star, "*"};
        case '?':
            return {Element::any, "?"};
        case '\\':
            if (at == pattern.size()) return {Element::lone_backslash, "\\"};
            return {Element::literal, std::string(1, pattern[at++])};
        case '[': {
            const std::size_t end = set_end(pattern, start);
            if (end == std::string_view::npos) return {Element::open_bracket, "["};
            at = end;
            return {Element::set, std::string(pattern.substr(start, end - start))};
        }
        default:
            return {Element::literal, std::string(1, pattern[start])};
    }
}

std::vector<Piece> pieces_of(std::string_view pattern) {
    std::vector<Piece> out;
    for (std::size_t at = 0; at < pattern.size();) out.push_back(next_piece(pattern, at));
    return out;
}

// Whether an ASCII bracket expression matches no character that is valid in a name.
bool is_empty_set(const std::string& set) {
    for (char c = 1; c > 0 && c < 127; ++c)
        if (c != '/' && is_match(set, std::string(1, c))) return false;
    return std::ranges::all_of(set, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string why_never_matches(const Piece& piece) {
    if (piece.kind == Element::literal && piece.text == "/")
        return "sysfs replaces \"/\" in a name with \"!\"";
    if (piece.kind == Element::set && is_empty_set(piece.text))
        return in_quotes(piece.text) + " matches no character";
    if (piece.kind == Element::open_bracket) return "its bracket is not closed";
    return piece.kind == Element::lone_backslash ? "nothing follows the backslash at its end" : "";
}

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

// Why PATTERN is written in another language, or names what no rule reaches.
std::string why_foreign(const std::string& pattern) {
    if (pattern.starts_with("kworker"))
        return "it names a thread; `wq-tunectl explain` tells the workqueues that a kworker serves";
    if (has_braces(pattern)) return "braces have no meaning in it: write a list, match = [\"...\", \"...\"]";
    if (is_regular(pattern))
        return "it is a regular expression, not a glob: `*` is any text, and match can be a list";
    if (const std::string owner = why_only_default(pattern); !owner.empty())
        return fmt::format("it is not in sysfs ({}); only @default reaches it, see [default_scope]", owner);
    return "";
}

}  // namespace

std::string why_never_matches(const std::string& pattern) {
    if (auto why = why_foreign(pattern); !why.empty()) return why;
    const auto pieces = pieces_of(pattern);
    for (const Piece& piece : pieces)
        if (auto why = why_never_matches(piece); !why.empty()) return why;
    const auto stars = std::ranges::count(pieces, Element::star, &Piece::kind);
    if (pieces.size() - static_cast<std::size_t>(stars) <= kLongestWorkqueueName) return "";
    return fmt::format("a name has at most {} characters", kLongestWorkqueueName);
}

bool covers(const std::string& earlier, const std::string& later) {
    if (earlier == later) return true;
    if (later.find_first_of(kSpecial) == std::string::npos) return is_match(earlier, later);
    return earlier.find_first_of(kSpecial) + 1 == earlier.size() && earlier.back() == '*' &&
           later.starts_with(earlier.substr(0, earlier.size() - 1));
}

std::vector<std::pair<Origin, std::string>> warnings_about(const std::vector<WorkqueueRule>& rules) {
    struct Match {
        const std::string& glob;
        const Origin& origin;
    };
    std::vector<std::pair<Origin, std::string>> out;
    std::list<Match> wide;  // earlier patterns with wildcards
    std::map<std::pair<std::string_view, std::string_view>, const Origin*> same;  // by file and pattern
    const auto first_of = [&](const Match& match) -> std::optional<Match> {
        for (const Match& one : wide)
            if (one.origin.file == match.origin.file && covers(one.glob, match.glob)) return one;
        const auto equal = same.find({match.origin.file, match.glob});
        return equal == same.end() ? std::nullopt : std::optional(Match{match.glob, *equal->second});
    };
    for (const WorkqueueRule& rule : rules)
        for (std::size_t i = 0; i < rule.match.size(); ++i) {
            const Match match{rule.match[i], rule.match_origins[i]};
            if (const auto why = why_never_matches(match.glob); !why.empty())
                out.emplace_back(match.origin,
                                 fmt::format("{} matches no workqueue: {}", in_quotes(match.glob), why));
            if (const auto first = first_of(match)) {
                out.emplace_back(
                    match.origin,
                    fmt::format("{} never applies: {} at {} comes first and matches the same names",
                                in_quotes(match.glob), in_quotes(first->glob), first->origin.text()));
            } else if (rule.expires.empty()) {
                same.try_emplace({match.origin.file, match.glob}, &match.origin);
                if (match.glob.find_first_of(kSpecial) != std::string::npos) wide.push_back(match);
            }
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
                 "", 0});
    return out;
}

std::vector<PlacedPattern> patterns_without_match(const Policy& policy,
                                                  const std::vector<std::string>& names) {
    std::vector<PlacedPattern> out;
    for (const WorkqueueRule& rule : policy.rules)
        for (const std::string& pattern : rule.match) {
            const auto matches = [&](const std::string& name) { return is_match(pattern, name); };
            if (!rule.expired && why_never_matches(pattern).empty() && pattern != "*" &&
                std::ranges::none_of(names, matches))
                out.push_back({pattern, rule.origin});
        }
    return out;
}

namespace {

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

}  // namespace

std::string why_only_default(const std::string& name) {
    const bool tells = std::min(name.find_first_of(kSpecial), name.size()) >= kTelling;
    for (const auto& [glob, owner] : kInvisible)
        if (is_match(glob, name) || (tells && is_match(name, glob))) return owner;
    return "";
}

namespace {

constexpr std::size_t kLongestWord = 32;

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The Levenshtein distance without regard to case, computed one table row at a time.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0U);
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string_view>& words) {
    if (word.empty() || word.size() > kLongestWord || words.empty()) return "";
    const auto nearest = std::min_element(
        words.begin(), words.end(), [&](auto a, auto b) { return distance(word, a) < distance(word, b); });
    const std::size_t slips = distance(word, *nearest);
    if (slips == 2 && word[0] != nearest->front()) return "";  // "foo" is not "root"
    return slips <= 2 && slips < nearest->size() / 2 + 1 ? std::string(*nearest) : "";
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& words) {
    const std::string nearest = nearest_word(word, words);
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
