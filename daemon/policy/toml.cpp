// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/toml.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "policy/rule_warnings.h"
#include "policy/settings.h"

namespace wq {
namespace {

constexpr std::size_t kMaxMistakes = 1000;  // enough for any reader
constexpr std::size_t kMaxItems = 64;       // elements of an array
constexpr std::size_t kExcerpt = 100;       // bytes
constexpr unsigned kMaxDepth = 16;          // brackets
constexpr unsigned kMaxDots = 128;          // per line
constexpr std::size_t kMaxBinary = 64;      // with 0b

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

// What the library shows of a line: its number and text, the column of its mark, and the note there.
struct Shown {
    unsigned line = 0;
    std::size_t column = 0;
    std::string_view text;
    std::string_view note;
};

std::string_view next_line(std::string_view& rest) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    return line;
}

std::string_view trimmed_left(std::string_view text, const char* what) {
    return text.substr(std::min(text.find_first_not_of(what), text.size()));
}

// The last line of the file that REPORT shows. The library keeps no other place of an error that both
// versions have:
//     [error] toml::insert_value: value ("a") already exists.
//      --> policy
//       |
//     1 | a=1
//       |   ^--- value already exists here
//      ...
//     3 | a = 3
//       |     ^--- value defined twice
Shown last_shown(std::string_view report) {
    Shown last;
    for (Shown now; !report.empty();) {
        const auto line = next_line(report);
        const auto bar = line.find(" |");
        if (bar == std::string_view::npos) continue;
        const auto head = trimmed_left(line.substr(0, bar), " ");
        const auto rest = line.substr(std::min(bar + 3, line.size()));
        const auto mark = rest.find_first_not_of(' ');
        if (const auto number = number_of<unsigned>(head)) {
            now = {*number, 0, rest, ""};
        } else if (head.empty() && mark != std::string_view::npos && now.line >= last.line &&
                   std::string_view("^~-").find(rest[mark]) != std::string_view::npos) {
            now.column = mark + 1;
            now.note = trimmed_left(rest.substr(mark), "^~- ");
            last = now;
        }
    }
    return last;
}

// Removes the quotes that word processors write from TEXT. Returns whether there were any.
bool remove_typographic_quotes(std::string& text) {
    const std::size_t size = text.size();
    for (const std::string_view quote : {"“", "”", "„", "‘", "’", "‚", "«", "»"})
        for (auto at = text.find(quote); at != std::string::npos; at = text.find(quote))
            text.erase(at, quote.size());
    return text.size() != size;
}

// What to tell if the error at PLACE, of LINE, is a word that has no quotes, or typographic ones. Moves PLACE
// to the word.
std::string without_quotes(std::string_view line, Origin& place) {
    const auto before = line.substr(0, place.column - 1).find_last_of("=[,{");
    if (before == std::string_view::npos || line.find('=') > before) return "";
    const std::size_t begin = std::min(line.find_first_not_of(" \t", before + 1), line.size());
    std::string value(line.substr(begin, line.substr(begin).find_first_of("#,]}")));
    value.erase(value.find_last_not_of(" \t") + 1);
    const bool typographic = remove_typographic_quotes(value);
    if (typographic) std::erase_if(value, [](char c) { return c == '"' || c == '\''; });
    if (value.find_first_not_of("0123456789+-._:eETZ ") == std::string::npos ||
        value.find_first_of("\"'=[{\\") != std::string::npos)
        return "";
    place.column = static_cast<unsigned>(begin + 1);
    return fmt::format("put it in {}quotes: \"{}\"", typographic ? "straight " : "", printable(value));
}

// The library's REPORT in one line.
PolicyError told(const TomlFile& file, std::string_view report) {
    auto title = trimmed_left(next_line(report), " ");
    if (title.starts_with("[error] ")) title.remove_prefix(8);
    if (title.starts_with("toml::")) title.remove_prefix(std::min(title.find(": ") + 2, title.size()));
    const Shown shown = last_shown(report);
    Origin place{file.path, std::max(shown.line, 1U), static_cast<unsigned>(shown.column)};
    // 3.7 shows the time of a date with a time as if it were in line 1, and both a line after the last one.
    const auto number_at = [&](std::size_t offset) {
        return static_cast<unsigned>(1 +
                                     std::ranges::count(std::string_view(file.text).substr(0, offset), '\n'));
    };
    if (const auto at = file.text.find(shown.text);
        file.line(place.line) != shown.text && at != std::string::npos)
        place.line = number_at(at);
    place.line = std::min(place.line, number_at(file.text.size()));
    const auto line = file.line(place.line);
    place.column = std::clamp(place.column, 1U, static_cast<unsigned>(line.size() + 1));
    if (const std::string advice = without_quotes(line, place); !advice.empty())
        return file.error_at(place, advice);
    std::string message = "syntax error";
    for (const auto part : {title.substr(0, title.find_last_not_of(" .") + 1), shown.note})
        if (!part.empty() && part != "here") message.append(": ").append(part);
    return file.error_at(place, printable(message));
}

// ---- excerpts

// The part of LINE that is shown for an error at COLUMN: the whole line, or kExcerpt bytes near the column.
// Cut between characters: each has at most three continuation bytes.
std::string_view excerpt(std::string_view line, std::size_t column) {
    if (line.size() <= kExcerpt) return line;
    std::size_t start = column <= kExcerpt / 2 ? 0 : std::min(column - kExcerpt / 2, line.size() - kExcerpt);
    for (int i = 0; i < 3 && start > 0 && is_utf8_continuation(line[start]); ++i) ++start;
    std::size_t end = std::min(start + kExcerpt, line.size());
    for (int i = 0; i < 3 && end < line.size() && is_utf8_continuation(line[end]); ++i) --end;
    return line.substr(start, end - start);
}

// Describes a value for the end of "must be a number, not ...".
std::string description(const TomlValue& value) {
    if (value.is_string()) return "the string " + in_quotes(toml::get<std::string>(value));
    if (value.is_integer()) return std::to_string(value.as_integer());
    if (value.is_boolean()) return value.as_boolean() ? "true" : "false";
    if (value.is_floating()) return fmt::format("the floating-point number {}", value.as_floating());
    if (value.is_array()) return "an array";
    if (value.is_table()) return "a table";
    if (value.is_local_date()) return "the date " + *read_day(value);
    return value.is_local_time() ? "a time" : "a date with a time";
}

}  // namespace

std::optional<TomlValue> TomlFile::parse() {
    if (const auto flaw = find_flaw(text)) {
        const auto before = std::string_view(text).substr(0, flaw->offset);
        errors.push_back(error_at({path, static_cast<unsigned>(1 + std::ranges::count(before, '\n')),
                                   static_cast<unsigned>(before.size() - (before.rfind('\n') + 1) + 1)},
                                  flaw->message));
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
    for (std::size_t at = 0; at < number; ++at) out = next_line(rest);
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
    const std::string_view whole = line(place.line);
    const std::string_view shown = excerpt(whole, place.column);
    const auto start = static_cast<std::size_t>(shown.data() - whole.data());
    const bool is_inside = place.column > start && place.column <= whole.size() + 1;
    return {path,
            place.line,
            place.column,
            std::move(message),
            printable(shown),
            is_inside ? static_cast<unsigned>(place.column - start) : 0};
}

void TomlFile::error(const TomlValue& value, std::string message) {
    if (errors.size() < kMaxMistakes)
        errors.push_back(error_at(origin(value), std::move(message)));
    else if (errors.size() == kMaxMistakes)
        errors.push_back(
            error_at({}, fmt::format("more than {} mistakes; the others are not shown", kMaxMistakes)));
}

void TomlFile::refuse(const TomlValue& value, const std::string& message) {
    error(value, refusal(value, message).value().text);
}

bool TomlFile::has_told_enough() const {
    return errors.size() > kMaxMistakes;
}

const TomlValue* TomlTable::find(const std::string& key) const {
    const auto& members = value->as_table();
    const auto found = members.find(key);
    return found == members.end() ? nullptr : &found->second;
}

std::optional<TomlTable> TomlTable::table(const std::string& key) const {
    const TomlValue* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (found->is_table()) return TomlTable{found, file, fmt::format("[{}]", key)};
    file->refuse(*found, fmt::format("{0} must be one table, [{0}]", key));
    return std::nullopt;
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) const {
    std::vector<TomlTable> out;
    const TomlValue* found = find(key);
    if (found == nullptr) return out;
    const auto take = [&](const TomlValue& one) {
        if (one.is_table() && found->is_array())
            out.push_back({&one, file, fmt::format("[[{}]]", key)});
        else
            file->refuse(one, fmt::format("{0} must be a list of tables, each below its own [[{0}]]", key));
    };
    if (!found->is_array()) take(*found);
    if (found->is_array())
        for (const TomlValue& element : found->as_array()) take(element);
    return out;
}

std::optional<std::vector<const TomlValue*>> TomlTable::items(const std::string& key,
                                                              std::size_t least) const {
    return get(key, [&](const TomlValue& array) -> Result<std::vector<const TomlValue*>> {
        if (!array.is_array()) return refusal(array, "must be an array");
        if (array.as_array().size() < least) return fail("must have an element, or be left out");
        if (array.as_array().size() > kMaxItems)
            return fail(fmt::format("has more than {} elements", kMaxItems));
        std::vector<const TomlValue*> out;
        for (const TomlValue& element : array.as_array()) out.push_back(&element);
        return out;
    });
}

std::vector<TomlText> TomlTable::texts(const std::string& key) const {
    std::vector<TomlText> out;
    const TomlValue* found = find(key);
    if (found == nullptr) return out;
    if (!found->is_array()) {
        if (auto text = get(key, read_text)) out.push_back({std::move(*text), found});
        return out;
    }
    for (const TomlValue* element : items(key, 1).value_or(std::vector<const TomlValue*>{}))
        if (auto text = read_text(*element))
            out.push_back({std::move(*text), element});
        else
            file->error(*element, fmt::format("an element of {} {}", key, text.error().text));
    return out;
}

void TomlTable::reject_unknown_keys(std::vector<std::string_view> known) const {
    std::ranges::sort(known);
    for (const auto& [key, member] : value->as_table()) {
        if (std::ranges::find(known, key) != known.end()) continue;
        if (file->has_told_enough()) return;
        std::string message = "unknown key " + in_quotes(key) + (name.empty() ? "" : " in " + name);
        const std::string nearest = suggestion(key, known);
        if (const auto homes = homes_of(key); !homes.empty())
            message += fmt::format("; it belongs {}", fmt::join(homes, " or "));
        else
            message += nearest.empty() ? fmt::format("; known keys: {}", fmt::join(known, ", ")) : nearest;
        file->error(member, message);
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
    if (!value.is_local_date()) return read_scalar(value);
    const auto& date = value.as_local_date();
    return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year), static_cast<int>(date.month) + 1,
                       static_cast<int>(date.day));
}

Result<std::string> read_word(const TomlValue& value, const std::vector<std::string_view>& words) {
    const std::string word = value.is_string() ? toml::get<std::string>(value) : "";
    if (std::ranges::find(words, word) != words.end()) return word;
    return fail(no_such_word(description(value), word, words));
}

}  // namespace wq
