// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace wq {

// TEXT with '?' in place of each byte of a control character (a terminal could interpret it) or of invalid
// UTF-8.
std::string printable(std::string_view text);

// The user's input for a message: quoted, printable, and limited in length.
std::string in_quotes(std::string_view words);

// Length in bytes of the UTF-8 character at OFFSET; 0 if it is not valid.
std::size_t utf8_length(std::string_view text, std::size_t offset);

// SECONDS as readable text: "90 s", "46 min", "5 h", "7 days". ROUNDED: `up` for an upper bound.
enum class Rounded : std::uint8_t { to_nearest, up };
std::string rough_time(std::uint64_t seconds, Rounded rounded = Rounded::to_nearest);

// SECONDS since 1970 as "2026-11-21 12:31 UTC", for text that is read on other machines.
std::string utc_text(std::int64_t seconds);

// "a, b and 3 more": at most MOST of NAMES.
std::string some_of(const std::vector<std::string>& names, std::size_t most);

// The parts of TEXT between commas.
std::vector<std::string> split_at_commas(std::string_view text);

// "1 item", "2 items". ONE: the noun in the singular.
std::string plural(std::size_t count, std::string_view one);

// All of TEXT as a number, in the notation of std::from_chars(): no space, no '+'; "nan" and "inf" are
// floating-point numbers. nullopt for any other text, and for a number that T cannot represent.
template <class T>
std::optional<T> number_of(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// The value of KEY in MAP; nullptr if there is none.
template <class Map>
auto* find_in(Map& map, const typename Map::key_type& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
}

// XXH64, seed 0. Files and policies store the result, so it must be the same on every machine and in every
// version. It does not resist deliberate collisions.
std::uint64_t hash_of(std::string_view text);

inline bool is_utf8_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// The order of names for people: "nvme-2" before "nvme-10".
inline bool natural_less(const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) < 0;
}

}  // namespace wq
