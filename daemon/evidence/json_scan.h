// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wq {

// Reads JSON from left to right, into variables that the caller keeps, so that a line of a ledger costs no
// allocation: nlohmann's parser takes 6 times as long for such a line (tests/bench/RESULTS.md). A function
// returns false if the text is not what it reads. After that, reading cannot continue, except after null().
class JsonScan {
  public:
    explicit JsonScan(std::string_view text) : text_(text) {}

    // MEMBER(key) reads the value of each member. The key is as written, with its escapes.
    template <class F>
    bool object(F member);
    // ELEMENT(index) reads each element.
    template <class F>
    bool array(F element);
    // False for control characters, escaped or not, unpaired UTF-16 surrogates, and invalid UTF-8.
    bool string(std::string& out);
    bool number(double& out);        // finite
    bool count(std::uint64_t& out);  // a whole number, at most 2^53
    bool boolean(bool& out);
    // If the next value is null, reads it.
    bool null();
    bool skip();  // any value
    // Whether nothing but blanks follows.
    bool at_end();
    [[nodiscard]] std::size_t offset() const { return at_; }

  private:
    void pass_blanks();
    bool take(char c);
    bool take_word(std::string_view word);
    bool raw_string(std::string_view& out, bool& escaped);
    bool hex4(std::string_view digits, std::uint32_t& out) const;
    bool unescape(std::string_view raw, std::string& out) const;

    std::string_view text_;
    std::size_t at_ = 0;
    unsigned depth_ = 0;
};

template <class F>
bool JsonScan::object(F member) {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
        std::string_view key;
        bool escaped = false;
        if (!raw_string(key, escaped) || !take(':') || !member(key)) return false;
    } while (take(','));
    return take('}');
}

template <class F>
bool JsonScan::array(F element) {
    if (!take('[')) return false;
    if (take(']')) return true;
    std::size_t index = 0;
    do {
        if (!element(index++)) return false;
    } while (take(','));
    return take(']');
}

}  // namespace wq
