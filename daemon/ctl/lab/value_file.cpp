// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/value_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/file.h"

namespace wq::ab {
namespace {

Result<std::string> without_links(const std::string& path) {
    struct Free {
        void operator()(char* text) const { std::free(text); }  // NOLINT(cppcoreguidelines-no-malloc)
    };
    const std::unique_ptr<char, Free> real(::realpath(path.c_str(), nullptr));
    if (!real) return fail_errno(path, errno);
    return std::string(real.get());
}

std::string_view without_end_of_line(std::string_view content) {
    while (content.ends_with('\n')) content.remove_suffix(1);
    return content;
}

// Returns "none" for "mq-deadline [none]"; empty if not exactly one word is in brackets.
std::optional<std::string_view> chosen_word(std::string_view content) {
    std::optional<std::string_view> chosen;
    for (std::string_view rest = content; !rest.empty();) {
        const auto end = rest.find_first_of(" \t\n");
        const auto word = rest.substr(0, end);
        if (word.size() > 2 && word.front() == '[' && word.back() == ']') {
            if (chosen) return std::nullopt;
            chosen = word.substr(1, word.size() - 2);
        }
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    return chosen;
}

// Writes TEXT to PATH. Returns whether PATH then has the value of ORIGINAL.
Result<bool> is_taken(ValueFiles& files, const std::string& path, const std::string& text,
                      const std::string& original) {
    if (auto wrote = files.write(path, text); !wrote) return tl::unexpected(wrote.error());
    const auto now = files.read(path);
    if (!now) return tl::unexpected(now.error());
    return is_same_value(*now, original);
}

}  // namespace

Result<std::string> KernelValueFiles::read(const std::string& path) const {
    return read_file(path);
}

Status KernelValueFiles::write(const std::string& path, const std::string& value) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW));
    if (!fd) return fail_errno(path + ": opening for writing", errno);
    const std::string text = value.empty() ? "\n" : value;
    ssize_t n = 0;
    do n = ::write(fd.get(), text.data(), text.size());
    while (n < 0 && errno == EINTR);
    if (n < 0) return fail_errno(path + ": writing '" + value + "'", errno);
    if (static_cast<std::size_t>(n) != text.size()) return fail_errno(path + ": short write", EIO);
    return {};
}

std::string value_in(std::string_view content) {
    return std::string(chosen_word(content).value_or(without_end_of_line(content)));
}

bool is_same_value(std::string_view a, std::string_view b) {
    const auto chosen = chosen_word(a);
    return a == b || (chosen && chosen == chosen_word(b));
}

Status put_value_back(ValueFiles& files, const std::string& path, const std::string& original) {
    const std::string value = value_in(original);
    auto back = is_taken(files, path, value, original);
    // The word in brackets may be ordinary text and not a choice; then write the whole text.
    const std::string text(without_end_of_line(original));
    if (back && !*back && text != value) back = is_taken(files, path, text, original);
    if (!back) return tl::unexpected(back.error());
    return *back ? Status{}
                 : fail(fmt::format("{}: writing the original value '{}' does not restore it", path, value));
}

Result<std::string> resolve_value_file(const std::string& root, const std::string& path) {
    if (!path.starts_with('/')) return fail(path + ": is not an absolute path", EINVAL);
    const auto base = root.empty() ? Result<std::string>("") : without_links(root);
    if (!base) return tl::unexpected(base.error());
    auto real = without_links(root + path);
    if (!real) return real;
    if (!real->starts_with(*base + "/sys/") && !real->starts_with(*base + "/proc/"))
        return fail(fmt::format("{}{} is not below /sys or /proc", path,
                                *real == *base + path ? "" : ", which is " + *real + ","),
                    EPERM);
    struct stat st {};
    if (::stat(real->c_str(), &st) != 0) return fail_errno(*real, errno);
    if (!S_ISREG(st.st_mode)) return fail(path + ": is not a file", EINVAL);
    return real;
}

}  // namespace wq::ab
