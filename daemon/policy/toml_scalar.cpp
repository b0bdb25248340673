// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/toml_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "policy/source_text.h"

namespace wq {
namespace {

using Value = decltype(TomlValue::value);

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Takes a word apart from its beginning.
class Reader {
  public:
    explicit Reader(std::string_view word) : rest_(word) {}

    [[nodiscard]] bool done() const { return rest_.empty(); }
    [[nodiscard]] std::string_view rest() const { return rest_; }

    bool take(std::string_view one_of) {
        if (rest_.empty() || one_of.find(rest_[0]) == std::string_view::npos) return false;
        rest_.remove_prefix(1);
        return true;
    }

    bool take_word(std::string_view word) {
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }

    // Exactly COUNT digits, a number of at most MAX.
    std::optional<unsigned> number(std::size_t count, unsigned max) {
        unsigned value = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (i >= rest_.size() || !is_digit(rest_[i])) return std::nullopt;
            value = value * 10 + static_cast<unsigned>(rest_[i] - '0');
        }
        rest_.remove_prefix(count);
        if (value > max) return std::nullopt;
        return value;
    }

    // One digit or more, with single underscores between them; without those they are added to OUT.
    bool digits(std::string_view allowed, std::string& out) {
        if (rest_.empty() || allowed.find(rest_[0]) == std::string_view::npos) return false;
        do {
            out += rest_[0];
            rest_.remove_prefix(1);
            const bool between =
                rest_.size() > 1 && rest_[0] == '_' && allowed.find(rest_[1]) != std::string_view::npos;
            if (between) rest_.remove_prefix(1);
        } while (!rest_.empty() && allowed.find(rest_[0]) != std::string_view::npos);
        return true;
    }

  private:
    std::string_view rest_;
};

constexpr std::string_view kDecimal = "0123456789";
constexpr struct {
    std::string_view prefix;
    std::string_view digits;
    int base;
} kBases[] = {{"0x", "0123456789abcdefABCDEF", 16}, {"0o", "01234567", 8}, {"0b", "01", 2}};

std::string not_a_value(std::string_view word) {
    return fmt::format("{} is not a value; a string needs quotes", in_quotes(word));
}

Result<Value> integer(const std::string& digits, int base) {
    std::int64_t value = 0;
    const auto* end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, value, base).ec != std::errc())
        return fail("the number does not fit into 64 bits");
    return value;
}

Result<Value> floating(const std::string& digits) {
    double value = 0;
    const auto* end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, value).ec != std::errc())
        return fail("the number is too large or too small");
    return value;
}

// After a sign, if any, which MINUS tells.
Result<Value> decimal(Reader reader, bool minus, std::string_view word) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (reader.rest() == "inf") return minus ? -kInfinity : kInfinity;
    if (reader.rest() == "nan") return std::numeric_limits<double>::quiet_NaN();
    std::string digits = minus ? "-" : "";
    if (!reader.digits(kDecimal, digits)) return fail(not_a_value(word));
    if (digits.size() > (minus ? 2 : 1) && digits[minus ? 1 : 0] == '0')
        return fail("a number does not begin with 0");
    if (reader.done()) return integer(digits, 10);
    const bool point = reader.take(".");
    if (point) digits += '.';
    if (point && !reader.digits(kDecimal, digits)) return fail("digits must follow the point");
    if (reader.take("eE")) {
        digits += 'e';
        const bool negative = reader.take_word("-");
        if (negative)
            digits += '-';
        else
            reader.take_word("+");
        if (!reader.digits(kDecimal, digits)) return fail("digits must follow the e");
    }
    if (!reader.done()) return fail(not_a_value(word));
    return floating(digits);
}

Result<Value> number(std::string_view word) {
    for (const auto& [prefix, allowed, base] : kBases) {
        Reader reader(word);
        if (!reader.take_word(prefix)) continue;
        std::string digits;
        if (!reader.digits(allowed, digits) || !reader.done()) return fail(not_a_value(word));
        return integer(digits, base);
    }
    Reader reader(word);
    const bool minus = reader.take_word("-");
    if (!minus) reader.take_word("+");
    return decimal(reader, minus, word);
}

unsigned days_of(unsigned year, unsigned month) {
    if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

bool take_date(Reader& reader) {
    const auto year = reader.number(4, 9999);
    if (!year || !reader.take("-")) return false;
    const auto month = reader.number(2, 12);
    if (!month || *month == 0 || !reader.take("-")) return false;
    const auto day = reader.number(2, days_of(*year, *month));
    return day && *day > 0;
}

bool take_time(Reader& reader) {
    if (!reader.number(2, 23) || !reader.take(":")) return false;
    if (!reader.number(2, 59) || !reader.take(":")) return false;
    if (!reader.number(2, 60)) return false;  // a leap second
    if (!reader.take(".")) return true;
    if (!reader.take(kDecimal)) return false;
    while (reader.take(kDecimal)) {
    }
    return true;
}

// Nothing, which is local time, or how far it is from UTC.
bool take_zone(Reader& reader) {
    if (reader.done() || reader.take("Zz")) return true;
    return reader.take("+-") && reader.number(2, 23) && reader.take(":") && reader.number(2, 59);
}

bool is_date_or_time(std::string_view word) {
    Reader time(word);
    if (take_time(time) && time.done()) return true;
    Reader date(word);
    if (!take_date(date)) return false;
    return date.done() || (date.take("Tt ") && take_time(date) && take_zone(date) && date.done());
}

}  // namespace

bool looks_like_toml_date(std::string_view word) {
    constexpr std::string_view kForm = "0000-00-00";
    return word.size() == kForm.size() && std::ranges::equal(word, kForm, [](char c, char form) {
               return form == '0' ? is_digit(c) : c == form;
           });
}

Result<Value> parse_toml_scalar(std::string_view word) {
    if (word == "true" || word == "false") return word == "true";
    const bool dated = (word.size() > 4 && word[4] == '-' && looks_like_toml_date(word.substr(0, 10))) ||
                       word.find(':') != std::string_view::npos;
    if (!dated) return number(word);
    if (!is_date_or_time(word))
        return fail(fmt::format("{} is no date or time that exists", in_quotes(word)));
    return TomlDate{};
}

}  // namespace wq
