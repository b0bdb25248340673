// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/cpu_set.h"

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

// Takes an unsigned number off the front of TEXT.
bool take_number(std::string_view& text, unsigned& value, int base = 10) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

bool take(std::string_view& text, char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}

// One item of a list: "N", "A-B", or "A-B:used/group".
bool parse_item(std::string_view item, CpuSet& set) {
    unsigned first = 0;
    if (!take_number(item, first)) return false;
    unsigned last = first;
    unsigned used = 1;
    unsigned group = 1;
    if (take(item, '-')) {
        if (!take_number(item, last)) return false;
        if (take(item, ':') && !(take_number(item, used) && take(item, '/') && take_number(item, group)))
            return false;
    }
    if (!item.empty() || last < first || last >= CpuSet::kMaxCpus || used == 0 || used > group) return false;
    for (unsigned cpu = first; cpu <= last; cpu++)
        if ((cpu - first) % group < used) set.add(cpu);
    return true;
}

// The start of a text that was refused, for the error message.
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
    set.words_.resize((words.size() + 1) / 2);
    for (std::size_t i = 0; i < words.size(); i++)
        set.words_[i / 2] |= static_cast<std::uint64_t>(words[i]) << (i % 2 * 32);
    set.trim();
    return set;
}

CpuSet CpuSet::range(unsigned first, unsigned last) {
    CpuSet set;
    for (unsigned cpu = first; cpu <= last; cpu++) set.add(cpu);
    return set;
}

void CpuSet::add(unsigned cpu) {
    const std::size_t word = cpu / 64;
    cover(word, word + 1);
    words_[word - base_] |= std::uint64_t{1} << (cpu % 64);
}

void CpuSet::remove(unsigned cpu) {
    if (!has(cpu)) return;
    words_[cpu / 64 - base_] &= ~(std::uint64_t{1} << (cpu % 64));
    trim();
}

bool CpuSet::has(unsigned cpu) const {
    const std::size_t word = cpu / 64;
    return word >= base_ && word < end() && (words_[word - base_] >> (cpu % 64) & 1) != 0;
}

std::size_t CpuSet::count() const {
    std::size_t n = 0;
    for (auto word : words_) n += static_cast<std::size_t>(std::popcount(word));
    return n;
}

unsigned CpuSet::first() const {
    return static_cast<unsigned>(base_ * 64) + static_cast<unsigned>(std::countr_zero(words_.front()));
}

bool CpuSet::contains(const CpuSet& other) const {
    if (other.empty()) return true;
    if (other.base_ < base_ || other.end() > end()) return false;
    for (std::size_t i = other.base_; i < other.end(); i++)
        if ((other.words_[i - other.base_] & ~words_[i - base_]) != 0) return false;
    return true;
}

bool CpuSet::intersects(const CpuSet& other) const {
    for (std::size_t i = std::max(base_, other.base_); i < std::min(end(), other.end()); i++)
        if ((other.words_[i - other.base_] & words_[i - base_]) != 0) return true;
    return false;
}

std::vector<unsigned> CpuSet::cpus() const {
    std::vector<unsigned> out;
    out.reserve(count());
    for (std::size_t i = base_; i < end(); i++)
        for (auto word = words_[i - base_]; word != 0; word &= word - 1)
            out.push_back(static_cast<unsigned>(i * 64) + static_cast<unsigned>(std::countr_zero(word)));
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

CpuSet& CpuSet::operator|=(const CpuSet& other) {
    if (other.empty()) return *this;
    cover(other.base_, other.end());
    for (std::size_t i = other.base_; i < other.end(); i++)
        words_[i - base_] |= other.words_[i - other.base_];
    return *this;
}

CpuSet& CpuSet::operator&=(const CpuSet& other) {
    const std::size_t first = std::max(base_, other.base_);
    const std::size_t last = std::max(std::min(end(), other.end()), first);
    for (std::size_t i = base_; i < end(); i++)
        words_[i - base_] &= i >= first && i < last ? other.words_[i - other.base_] : 0;
    trim();
    return *this;
}

CpuSet& CpuSet::operator-=(const CpuSet& other) {
    for (std::size_t i = std::max(base_, other.base_); i < std::min(end(), other.end()); i++)
        words_[i - base_] &= ~other.words_[i - other.base_];
    trim();
    return *this;
}

// Makes room for the words FIRST..END-1.
void CpuSet::cover(std::size_t first, std::size_t end) {
    if (words_.empty()) base_ = first;
    if (first < base_) {
        words_.insert(words_.begin(), base_ - first, 0);
        base_ = first;
    }
    if (end > this->end()) words_.resize(end - base_);
}

void CpuSet::trim() {
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
    const auto used =
        std::find_if(words_.begin(), words_.end(), [](std::uint64_t word) { return word != 0; });
    base_ += static_cast<std::size_t>(used - words_.begin());
    words_.erase(words_.begin(), used);
    if (words_.empty()) base_ = 0;
}

}  // namespace wq
