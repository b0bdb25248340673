// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/source_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "kernel/fd.h"

namespace wq {
namespace {

constexpr std::size_t kExcerpt = 100;  // bytes
constexpr std::size_t kQuoted = 64;    // bytes of a user's words that a message repeats

bool is_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// LINE's first LENGTH bytes, or a little less where that would cut a character in two. No character has more
// than three further bytes.
std::string_view head(std::string_view line, std::size_t length) {
    if (line.size() <= length) return line;
    const std::size_t shortest = length - 3;
    while (length > shortest && is_continuation(line[length])) --length;
    return line.substr(0, length);
}

// Where the piece of LINE begins that is shown for an error at COLUMN: all of a short line, else what is
// around the column.
std::size_t excerpt_start(std::string_view line, std::size_t column) {
    if (line.size() <= kExcerpt || column <= kExcerpt / 2) return 0;
    std::size_t start = std::min(column - kExcerpt / 2, line.size() - kExcerpt);
    const std::size_t last = start + 3;
    while (start < last && is_continuation(line[start])) ++start;
    return start;
}

bool is_dev_null(const struct stat& st) {
    return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

PolicyErrors whole_file(const std::string& path, const std::string& message) {
    return {PolicyError{path, 0, 0, message, "", 0}};
}

// Why a file that is open is not read, or "".
std::string refusal(const struct stat& st) {
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return "not a regular file";
    if ((st.st_mode & S_IWOTH) != 0) return "everyone may write to it, so it is not trusted (chmod o-w)";
    if (!S_ISREG(st.st_mode)) return "not a regular file";
    if (static_cast<std::uintmax_t>(st.st_size) > kMaxPolicyFile) return "larger than 1 MiB";
    return "";
}

// Why no file of PATH's folder is read, or "": whoever may write to it can replace the file, but for the
// sticky bit (/tmp).
std::string refusal_of_folder(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    struct stat st {};
    if (::stat(folder.c_str(), &st) != 0 || (st.st_mode & S_IWOTH) == 0 || (st.st_mode & S_ISVTX) != 0)
        return "";
    return "everyone may write to its folder, so it is not trusted (chmod o-w)";
}

std::string why(int code) {
    return code == EFBIG ? "larger than 1 MiB" : fail_errno("cannot be read", code).value().text;
}

}  // namespace

SourceText::SourceText(std::string file, std::string text)
    : file_(std::move(file)), text_(std::move(text)), starts_{0} {
    for (std::size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1))
        starts_.push_back(at + 1);
}

std::string_view SourceText::line(std::size_t number) const {
    if (number == 0 || number > lines()) return {};
    const std::size_t start = starts_[number - 1];
    std::string_view line(text_.data() + start, text_.size() - start);
    line = line.substr(0, line.find('\n'));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
}

Place SourceText::place_of(std::size_t offset) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    const auto line = static_cast<unsigned>(after - starts_.begin());
    return {line, static_cast<unsigned>(offset - starts_[line - 1] + 1)};
}

PolicyError SourceText::error(Place place, std::string message) const {
    const std::string_view whole = line(place.line);
    const std::size_t start = excerpt_start(whole, place.column);
    const std::string_view rest = whole.substr(start);
    const bool shown = place.column > start && place.column <= whole.size() + 1;
    return {file_,
            place.line,
            place.column,
            std::move(message),
            printable(head(rest, kExcerpt)),
            shown ? static_cast<unsigned>(place.column - start) : 0};
}

tl::expected<SourceText, PolicyErrors> read_policy_file(const std::string& path) {
    const auto refuse = [&](const std::string& reason) { return tl::unexpected(whole_file(path, reason)); };
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat st {};
    if (!fd || ::fstat(fd.get(), &st) != 0) return refuse(why(errno));
    if (is_dev_null(st)) return SourceText(path, "");
    if (const auto reason = refusal(st); !reason.empty()) return refuse(reason);
    if (const auto reason = refusal_of_folder(path); !reason.empty()) return refuse(reason);
    auto text = read_all(fd.get(), kMaxPolicyFile);
    if (!text) return refuse(why(text.error().code));
    return SourceText(path, std::move(*text));
}

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
    std::size_t length = 0;
    while (length + utf8_length(words, length) <= kQuoted) length += utf8_length(words, length);
    return "\"" + printable(words.substr(0, length)) + "...\"";
}

std::size_t utf8_length(std::string_view text, std::size_t offset) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() - offset < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if (!is_continuation(text[offset + i])) return 0;
    // Too long a form, a surrogate, or past U+10FFFF.
    if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
    if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
    return length;
}

}  // namespace wq
