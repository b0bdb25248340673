// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "policy/quantity.h"
#include "policy/rule_warnings.h"

namespace wq {
namespace {

constexpr std::size_t kMaxExcerpt = 160;  // bytes of a line that is shown
constexpr unsigned kMaxDepth = 16;        // brackets
constexpr unsigned kMaxDots = 128;        // per line
constexpr std::size_t kMaxBinary = 64;    // with 0b

struct Flaw {
    std::size_t offset;
    std::string message;
};

// The offset after the string or comment at AT of TEXT; else after one character.
std::size_t after_token(std::string_view text, std::size_t at) {
    const char first = text[at];
    if (first == '#') return std::min(text.find('\n', at), text.size());
    if (first != '"' && first != '\'') return at + 1;
    const bool is_long = at + 2 < text.size() && text[at + 1] == first && text[at + 2] == first;
    const std::string_view end = text.substr(at, is_long ? 3 : 1);
    for (at += end.size(); at < text.size(); ++at) {
        if (!is_long && text[at] == '\n') return at;
        if (first == '"' && text[at] == '\\') {
            ++at;
        } else if (text.substr(at, end.size()) == end) {
            at += end.size();
            for (int more = 0; is_long && more < 2 && at < text.size() && text[at] == first; ++more) ++at;
            return at;
        }
    }
    return text.size();
}

// Where brackets are nested too deep.
std::optional<Flaw> find_deep(std::string_view text) {
    unsigned depth = 0;
    for (std::size_t at = 0; at < text.size(); at = after_token(text, at)) {
        if (text[at] == '[' || text[at] == '{') ++depth;
        if ((text[at] == ']' || text[at] == '}') && depth > 0) --depth;
        if (depth > kMaxDepth) return Flaw{at, fmt::format("values nested deeper than {} levels", kMaxDepth)};
    }
    return std::nullopt;
}

// The first thing in TEXT that the library must not get:
// - bytes that are not UTF-8, and control characters: 3.7 accepts some of them;
// - long lines: 3.7 needs time with the square of their length;
// - brackets or dotted keys nested deep: both versions recurse, as do the destructors of their values;
// - binary numbers of more than 62 digits: both overflow.
std::optional<Flaw> find_flaw(std::string_view text) {
    unsigned dots = 0;
    for (std::size_t at = 0, line = 0, length = 0; at < text.size(); at += length) {
        const auto byte = static_cast<unsigned char>(text[at]);
        length = utf8_length(text, at);
        if (length == 0) return Flaw{at, fmt::format("not UTF-8: byte 0x{:02x}", byte)};
        const bool is_end = byte == '\n' || text.substr(at, 2) == "\r\n";
        if ((byte < 0x20 && byte != '\t' && !is_end) || byte == 0x7f)
            return Flaw{at, fmt::format("control character 0x{:02x}", byte)};
        if (at + length - line > kMaxPolicyLine)
            return Flaw{at, fmt::format("line longer than {} bytes", kMaxPolicyLine)};
        if (byte == '.' && ++dots > kMaxDots)
            return Flaw{at, fmt::format("more than {} dots in a line", kMaxDots)};
        if (byte == '0' && text.substr(at, 2) == "0b" &&
            std::min(text.find_first_not_of("01_", at + 2), text.size()) - at > kMaxBinary)
            return Flaw{at, fmt::format("a binary number of more than {} characters", kMaxBinary)};
        if (byte != '\n') continue;
        line = at + 1;
        dots = 0;
    }
    return find_deep(text);
}

// ---- syntax errors

unsigned line_at(std::string_view text, std::size_t offset) {
    return static_cast<unsigned>(1 + std::ranges::count(text.substr(0, offset), '\n'));
}

std::string trimmed_left(const std::string& text, const char* what) {
    return text.substr(std::min(text.find_first_not_of(what), text.size()));
}

// What to tell if the error at PLACE, of LINE, is a word without quotes, or with those of a word processor.
// Moves PLACE to the word.
std::string without_quotes(std::string_view line, Origin& place) {
    const auto before = line.substr(0, place.column - 1).find_last_of("=[,{");
    if (before == std::string_view::npos || line.find('=') > before) return "";
    const std::size_t begin = std::min(line.find_first_not_of(" \t", before + 1), line.size());
    const std::string_view rest = line.substr(begin, line.substr(begin).find_first_of("#,]}"));
    std::string word(rest.substr(0, rest.find_last_not_of(" \t") + 1));
    for (const std::string_view quote : {"“", "”", "„", "‘", "’"})
        for (auto at = word.find(quote); at != std::string::npos; at = word.find(quote))
            word.erase(at, quote.size());
    const auto is_in_names = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               std::string_view("-_*?.:%!/ ").find(c) != std::string_view::npos;
    };
    if (word.find_first_not_of("0123456789-._:eETZ ") == std::string_view::npos ||
        !std::ranges::all_of(word, is_in_names))
        return "";
    place.column = static_cast<unsigned>(begin + 1);
    return fmt::format("put it in quotes: \"{}\"", word);
}

// The library's REPORT in one line. Both versions have the place in it alone: the last mark counts.
//     [error] toml::insert_value: value ("a") already exists.
//      --> policy
//       |
//     1 | a=1
//       |   ^--- value already exists here
//      ...
//     3 | a = 3
//       |     ^--- value defined twice
PolicyError told(const TomlFile& file, const std::string& report) {
    std::istringstream lines(report);
    std::string title, text, marked, note;
    std::getline(lines, title);
    Origin place{file.path, 1, 1};
    unsigned number = 0;
    for (std::string line; std::getline(lines, line);) {
        const auto bar = line.find(" |");
        if (bar == std::string::npos) continue;
        const std::string head = trimmed_left(line.substr(0, bar), " ");
        const std::string rest = line.substr(std::min(bar + 3, line.size()));
        const auto mark = rest.find_first_of("^~-");
        if (const auto read = number_of<unsigned>(head)) {
            number = *read;
            text = rest;
        } else if (head.empty() && mark < rest.size() && rest.find_first_not_of(' ') == mark &&
                   number >= place.line) {
            place = {file.path, number, static_cast<unsigned>(mark + 1)};
            marked = text;
            note = trimmed_left(rest.substr(mark), "^~- ");
        }
    }
    // 3.7 shows the time of a date with a time as if it were in line 1, and both a line after the last one.
    if (const auto at = file.text.find(marked); file.line(place.line) != marked && at != std::string::npos)
        place.line = line_at(file.text, at);
    place.line = std::min(place.line, line_at(file.text, file.text.size()));
    const std::string_view line = file.line(place.line);
    place.column = std::clamp(place.column, 1U, static_cast<unsigned>(line.size() + 1));
    if (const std::string advice = without_quotes(line, place); !advice.empty())
        return file.error_at(place, advice);
    const std::string_view prefix = "[error] ";
    title.erase(title.find_last_not_of(". ") + 1);
    std::string message = "syntax error: " + title.substr(title.starts_with(prefix) ? prefix.size() : 0);
    if (!note.empty()) message += ": " + note;
    return file.error_at(place, printable(message));
}

// Describes a value for the end of "must be a number, not ...".
std::string description(const TomlValue& value) {
    if (value.is_string()) return "the string " + in_quotes(toml::get<std::string>(value));
    if (value.is_integer()) return std::to_string(value.as_integer());
    if (value.is_boolean()) return value.as_boolean() ? "true" : "false";
    if (value.is_floating()) return fmt::format("the floating-point number {}", value.as_floating());
    if (value.is_array()) return "an array";
    return value.is_table() ? "a table" : "a date or a time";
}

}  // namespace

std::optional<TomlValue> TomlFile::parse() {
    if (const auto flaw = find_flaw(text)) {
        const auto before = std::string_view(text).substr(0, flaw->offset);
        const auto column = static_cast<unsigned>(before.size() - (before.rfind('\n') + 1) + 1);
        errors.push_back(error_at({path, line_at(text, flaw->offset), column}, flaw->message));
        return std::nullopt;
    }
    std::istringstream stream(text);
    try {
#if TOML11_VERSION_MAJOR >= 4
        return toml::parse<TomlConfig>(stream, "policy");
#else
        return toml::parse<toml::discard_comments, std::unordered_map, TomlArray>(stream, "policy");
#endif
    } catch (const std::exception& error) {
        errors.push_back(told(*this, error.what()));
        return std::nullopt;
    }
}

std::string_view TomlFile::line(std::size_t number) const {
    std::string_view rest = text, out;
    for (std::size_t at = 0; at < number; ++at) {
        out = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), out.size() + 1));
    }
    if (out.ends_with('\r')) out.remove_suffix(1);
    return out;
}

Origin TomlFile::origin(const TomlValue& value) const {
    const auto place = value.location();
#if TOML11_VERSION_MAJOR >= 4
    return {path, static_cast<unsigned>(place.first_line_number()),
            static_cast<unsigned>(place.first_column_number())};
#else
    return {path, place.line(), place.column()};
#endif
}

PolicyError TomlFile::error_at(const Origin& place, std::string message) const {
    const std::string_view shown = line(place.line);
    return {path, place.line, place.column, std::move(message),
            shown.size() <= kMaxExcerpt ? printable(shown) : ""};
}

void TomlFile::error(const TomlValue& value, std::string message) {
    if (errors.size() < kMaxMistakes) errors.push_back(error_at(origin(value), std::move(message)));
}

const TomlValue* TomlTable::find(const std::string& key) const {
    return find_in(value->as_table(), key);
}

std::optional<TomlTable> TomlTable::table(const std::string& key) const {
    return get(key, [&](const TomlValue& found) -> Result<TomlTable> {
        if (found.is_table()) return TomlTable{&found, file, fmt::format("[{}]", key)};
        return refusal(found, fmt::format("must be one table, [{}]", key));
    });
}

std::vector<TomlTable> TomlTable::tables(const std::string& key, std::size_t most) const {
    std::vector<TomlTable> out;
    for (const TomlValue* one : elements(key, 0, most))
        if (one->is_table() && one != find(key))
            out.push_back({one, file, fmt::format("[[{}]]", key)});
        else
            file->error(*one, fmt::format("{0} must be a list of tables, each below its own [[{0}]]", key));
    return out;
}

std::vector<const TomlValue*> TomlTable::elements(const std::string& key, std::size_t least,
                                                  std::size_t most) const {
    std::vector<const TomlValue*> out;
    const TomlValue* found = find(key);
    if (found == nullptr) return out;
    if (!found->is_array()) return {found};
    for (const TomlValue& element : found->as_array()) out.push_back(&element);
    if (out.size() >= least && out.size() <= most) return out;
    file->error(*(out.size() > most ? out[most] : found),
                fmt::format("{} must have {} to {} elements, not {}", key, least, most, out.size()));
    return {};
}

void TomlTable::reject_unknown_keys(std::vector<std::string_view> known) const {
    std::ranges::sort(known);
    for (const auto& [key, member] : value->as_table()) {
        if (std::ranges::find(known, key) != known.end()) continue;
        if (file->errors.size() >= kMaxMistakes) return;
        const std::string nearest = suggestion(key, known);
        file->error(
            member,
            fmt::format("unknown key {}{}{}", in_quotes(key), name.empty() ? "" : " in " + name,
                        nearest.empty() ? fmt::format("; known keys: {}", fmt::join(known, ", ")) : nearest));
    }
}

tl::unexpected<Error> refusal(const TomlValue& value, const std::string& message) {
    return fail(fmt::format("{}, not {}", message, description(value)));
}

Result<bool> read_flag(const TomlValue& value) {
    if (value.is_boolean()) return value.as_boolean();
    return refusal(value, "must be true or false");
}

Result<std::string> read_text(const TomlValue& value) {
    auto text = value.is_string() ? read_scalar(value) : std::string();
    if (text && text->empty()) return refusal(value, "must be a string that is not empty");
    return text;
}

Result<std::string> read_scalar(const TomlValue& value) {
    if (value.is_integer()) return std::to_string(value.as_integer());
    if (value.is_floating()) return fmt::format("{}", value.as_floating());
    if (!value.is_string()) return refusal(value, "must be a string");
    auto text = toml::get<std::string>(value);
    if (text.find('\0') != std::string::npos) return fail("has a NUL character");  // a name would end there
    return text;
}

Result<std::string> read_day(const TomlValue& value) {
    std::string day = value.is_string() ? toml::get<std::string>(value) : "";
    if (value.is_local_date()) {
        const auto& date = value.as_local_date();
        day = fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year), static_cast<int>(date.month) + 1,
                          static_cast<int>(date.day));
    }
    if (is_date(day)) return day;
    return refusal(value, "must be a day without a time, such as 2027-01-31");
}

Result<std::string> read_word(const TomlValue& value, const std::vector<std::string_view>& words) {
    const std::string word = value.is_string() ? toml::get<std::string>(value) : "";
    if (std::ranges::find(words, word) != words.end()) return word;
    return fail(no_such_word(description(value), word, words));
}

}  // namespace wq
