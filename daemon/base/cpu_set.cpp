// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/cpu_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

namespace wq {
namespace {

std::string_view strip(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

// Parses an unsigned number at the start of TEXT and removes it from TEXT.
bool take_number(std::string_view& text, unsigned& value, int base = 10) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

// One item of a list: "N" or "A-B".
bool parse_item(std::string_view item, CpuSet& set) {
    unsigned first = 0;
    if (!take_number(item, first)) return false;
    unsigned last = first;
    if (item.starts_with('-')) {
        item.remove_prefix(1);
        if (!take_number(item, last)) return false;
    }
    if (!item.empty() || last < first || last >= CpuSet::kMaxCpus) return false;
    for (unsigned cpu = first; cpu <= last; cpu++) set.add(cpu);
    return true;
}

// The start of a rejected text, for the error message.
std::string excerpt(std::string_view text) {
    return text.size() <= 40 ? std::string(text) : fmt::format("{}...", text.substr(0, 40));
}

}  // namespace

Result<CpuSet> CpuSet::parse_list(std::string_view text) {
    CpuSet set;
    std::string_view rest = strip(text);
    while (!rest.empty()) {
        const auto comma = rest.find(',');
        const auto item = rest.substr(0, comma);
        if (!parse_item(item, set)) return fail(fmt::format("not a CPU list: '{}'", excerpt(item)), EINVAL);
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
        if (rest.empty()) return fail("not a CPU list: ends with a comma", EINVAL);
    }
    return set;
}

Result<CpuSet> CpuSet::parse_mask(std::string_view text) {
    std::string_view rest = strip(text);
    if (rest.empty()) return fail("not a CPU mask: empty", EINVAL);
    std::vector<unsigned> words;  // highest first
    for (;;) {
        const auto comma = rest.find(',');
        std::string_view item = rest.substr(0, comma);
        unsigned word = 0;
        if (item.size() > 8 || !take_number(item, word, 16) || !item.empty())
            return fail(fmt::format("not a CPU mask: '{}'", excerpt(text)), EINVAL);
        words.push_back(word);
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    std::reverse(words.begin(), words.end());
    while (!words.empty() && words.back() == 0) words.pop_back();
    if (words.size() > kMaxCpus / 32) return fail("not a CPU mask: too long", EOVERFLOW);
    CpuSet set;
    for (unsigned i = 0; i < words.size(); i++)
        if (words[i] != 0) set.word(i / 2).bits |= static_cast<std::uint64_t>(words[i]) << (i % 2 * 32);
    return set;
}

CpuSet CpuSet::range(unsigned first, unsigned last) {
    CpuSet set;
    for (unsigned cpu = first; cpu <= last; cpu++) set.add(cpu);
    return set;
}

void CpuSet::add(unsigned cpu) {
    word(cpu / 64).bits |= std::uint64_t{1} << (cpu % 64);
}

void CpuSet::remove(unsigned cpu) {
    if (!has(cpu)) return;
    word(cpu / 64).bits &= ~(std::uint64_t{1} << (cpu % 64));
    drop_empty();
}

bool CpuSet::has(unsigned cpu) const {
    return (bits_of(cpu / 64) >> (cpu % 64) & 1) != 0;
}

std::size_t CpuSet::count() const {
    std::size_t n = 0;
    for (const Word& word : words_) n += static_cast<std::size_t>(std::popcount(word.bits));
    return n;
}

unsigned CpuSet::first() const {
    const Word& word = words_.front();
    return word.number * 64 + static_cast<unsigned>(std::countr_zero(word.bits));
}

bool CpuSet::contains(const CpuSet& other) const {
    return std::ranges::all_of(
        other.words_, [&](const Word& theirs) { return (theirs.bits & ~bits_of(theirs.number)) == 0; });
}

bool CpuSet::intersects(const CpuSet& other) const {
    return std::ranges::any_of(
        other.words_, [&](const Word& theirs) { return (theirs.bits & bits_of(theirs.number)) != 0; });
}

std::vector<unsigned> CpuSet::cpus() const {
    std::vector<unsigned> out;
    out.reserve(count());
    for (const Word& word : words_)
        for (auto bits = word.bits; bits != 0; bits &= bits - 1)
            out.push_back(word.number * 64 + static_cast<unsigned>(std::countr_zero(bits)));
    return out;
}

std::string CpuSet::list() const {
    std::string out;
    const auto all = cpus();
    for (std::size_t i = 0; i < all.size();) {
        std::size_t j = i;
        while (j + 1 < all.size() && all[j + 1] == all[j] + 1) j++;
        if (!out.empty()) out += ',';
        out += i == j ? std::to_string(all[i]) : fmt::format("{}-{}", all[i], all[j]);
        i = j + 1;
    }
    return out;
}

std::string CpuSet::mask() const {
    if (empty()) return "0";
    std::string out;
    for (unsigned word = 2 * words_.back().number + 2; word-- > 0;) {
        const auto bits = static_cast<std::uint32_t>(bits_of(word / 2) >> (word % 2 * 32));
        if (!out.empty())
            out += fmt::format(",{:08x}", bits);
        else if (bits != 0)
            out = fmt::format("{:x}", bits);
    }
    return out;
}

CpuSet& CpuSet::operator|=(const CpuSet& other) {
    for (const Word& theirs : other.words_) word(theirs.number).bits |= theirs.bits;
    return *this;
}

CpuSet& CpuSet::operator&=(const CpuSet& other) {
    for (Word& word : words_) word.bits &= other.bits_of(word.number);
    drop_empty();
    return *this;
}

CpuSet& CpuSet::operator-=(const CpuSet& other) {
    for (Word& word : words_) word.bits &= ~other.bits_of(word.number);
    drop_empty();
    return *this;
}

// Index of word NUMBER, or where to insert it. Most sets have no gaps, so the first guess is right.
std::size_t CpuSet::place_of(unsigned number) const {
    if (words_.empty() || number < words_.front().number) return 0;
    const std::size_t guess = number - words_.front().number;
    if (guess < words_.size() && words_[guess].number == number) return guess;
    const auto at = std::ranges::lower_bound(words_, number, {}, &Word::number);
    return static_cast<std::size_t>(at - words_.begin());
}

CpuSet::Word& CpuSet::word(unsigned number) {
    const std::size_t at = place_of(number);
    if (at == words_.size() || words_[at].number != number)
        words_.insert(words_.begin() + static_cast<std::ptrdiff_t>(at), {number, 0});
    return words_[at];
}

std::uint64_t CpuSet::bits_of(unsigned number) const {
    const std::size_t at = place_of(number);
    return at < words_.size() && words_[at].number == number ? words_[at].bits : 0;
}

void CpuSet::drop_empty() {
    std::erase_if(words_, [](const Word& word) { return word.bits == 0; });
}

}  // namespace wq
