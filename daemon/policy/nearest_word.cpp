// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <numeric>

#include "policy/toml_table.h"

namespace wq {
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

}  // namespace wq
