// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/text.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <ctime>

namespace wq {
namespace {

constexpr std::size_t kQuoted = 64;  // a message quotes at most this many bytes of the user's input

}  // namespace

std::string printable(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_length(text, at);
        const auto byte = static_cast<unsigned char>(text[at]);
        // 0xC2 0x80..0x9F are control characters too (C1).
        const bool control = (byte < 0x20 && byte != '\t') || byte == 0x7F ||
                             (byte == 0xC2 && length == 2 && static_cast<unsigned char>(text[at + 1]) < 0xA0);
        if (length == 0 || control)
            out.append(std::max<std::size_t>(length, 1), '?');
        else
            out += text.substr(at, length);
        at += std::max<std::size_t>(length, 1);
    }
    return out;
}

std::string in_quotes(std::string_view words) {
    if (words.size() <= kQuoted) return "\"" + printable(words) + "\"";
    // A byte that is not valid UTF-8 counts as one character, as in printable().
    const auto step = [&](std::size_t at) { return std::max<std::size_t>(utf8_length(words, at), 1); };
    std::size_t length = 0;
    while (length + step(length) <= kQuoted) length += step(length);
    return "\"" + printable(words.substr(0, length)) + "...\"";
}

std::size_t utf8_length(std::string_view text, std::size_t offset) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() - offset < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if (!is_utf8_continuation(text[offset + i])) return 0;
    // Rejects overlong forms, surrogates, and code points above U+10FFFF.
    if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
    if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
    return length;
}

std::string rough_time(std::uint64_t seconds, Rounded rounded) {
    constexpr std::uint64_t kMinute = 60;
    constexpr std::uint64_t kHour = 60 * kMinute;
    constexpr std::uint64_t kDay = 24 * kHour;
    const auto in = [&](std::uint64_t unit, const char* name) {
        return std::to_string((seconds + (rounded == Rounded::up ? unit - 1 : unit / 2)) / unit) + name;
    };
    if (seconds < 2 * kMinute) return in(1, " s");
    if (seconds < 2 * kHour) return in(kMinute, " min");
    return seconds < 2 * kDay ? in(kHour, " h") : in(kDay, " days");
}

std::string utc_text(std::int64_t seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm utc{};
    char out[32] = "";
    if (::gmtime_r(&time, &utc) != nullptr) std::strftime(out, sizeof out, "%Y-%m-%d %H:%M UTC", &utc);
    return out;
}

std::uint64_t hash_of(std::string_view text) {
    const char* data = text.data();
    return data == nullptr ? XXH64("", 0, 0) : XXH64(data, text.size(), 0);
}

std::string some_of(const std::vector<std::string>& names, std::size_t most) {
    std::string out;
    for (std::size_t i = 0; i < names.size() && i < most; i++) out += (i > 0 ? ", " : "") + names[i];
    return names.size() > most ? out + " and " + std::to_string(names.size() - most) + " more" : out;
}

std::vector<std::string> split_at_commas(std::string_view text) {
    std::vector<std::string> out;
    for (;;) {
        const auto comma = text.find(',');
        out.emplace_back(text.substr(0, comma));
        if (comma == std::string_view::npos) return out;
        text.remove_prefix(comma + 1);
    }
}

std::string plural(std::size_t count, std::string_view one) {
    return std::to_string(count) + " " + std::string(one) + (count == 1 ? "" : "s");
}

}  // namespace wq
