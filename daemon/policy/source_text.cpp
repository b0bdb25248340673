// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/source_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/file.h"
#include "base/text.h"

namespace wq {
namespace {

constexpr std::size_t kExcerpt = 100;  // bytes

// The first LENGTH bytes of LINE, or up to three fewer so that no UTF-8 character is cut. A character has at
// most three continuation bytes.
std::string_view head(std::string_view line, std::size_t length) {
    if (line.size() <= length) return line;
    const std::size_t shortest = length - 3;
    while (length > shortest && is_utf8_continuation(line[length])) --length;
    return line.substr(0, length);
}

// The offset at which the excerpt of LINE starts for an error at COLUMN: 0 for a short line, else near the
// column.
std::size_t excerpt_start(std::string_view line, std::size_t column) {
    if (line.size() <= kExcerpt || column <= kExcerpt / 2) return 0;
    std::size_t start = std::min(column - kExcerpt / 2, line.size() - kExcerpt);
    const std::size_t last = start + 3;
    while (start < last && is_utf8_continuation(line[start])) ++start;
    return start;
}

bool is_dev_null(const struct stat& st) {
    return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

PolicyErrors whole_file(const std::string& path, const std::string& message) {
    return {PolicyError{path, 0, 0, message, "", 0}};
}

// Why an open file is rejected, or "".
std::string refusal(const struct stat& st) {
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return "not a regular file";
    if ((st.st_mode & S_IWOTH) != 0) return "everyone may write to it, so it is not trusted (chmod o-w)";
    if (!S_ISREG(st.st_mode)) return "not a regular file";
    if (static_cast<std::uintmax_t>(st.st_size) > kMaxPolicyFile) return "larger than 1 MiB";
    return "";
}

// Why files in PATH's folder are rejected, or "". Users with write permission on the folder can replace the
// file, unless the folder has the sticky bit (/tmp).
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

}  // namespace wq
