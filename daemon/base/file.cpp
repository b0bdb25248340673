// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/text.h"

namespace wq {
namespace {

enum class Until { end, newline };

// Reads FD to its end, or to its first newline, which is not in the result. LIMIT: bytes of the result.
Result<std::string> read_until(Until until, int fd, std::size_t limit) {
    std::string text;
    char buffer[4096];
    for (;;) {
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n == 0) return text;
        if (n < 0) {
            if (errno == EINTR) continue;
            return fail_errno("reading", errno);
        }
        const std::string_view part(buffer, static_cast<std::size_t>(n));
        const std::size_t newline = until == Until::newline ? part.find('\n') : std::string_view::npos;
        text += part.substr(0, newline);
        if (text.size() > limit) return fail_errno("reading", EFBIG);
        if (newline != std::string_view::npos) return text;
    }
}

// Opens PATH for reading. Does not block if PATH is a FIFO.
Fd open_to_read(const std::string& path) {
    return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
}

Fd create(const std::string& path, mode_t mode) {
    return Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
}

// Writes TEXT to FD, the new file TEMPORARY, which becomes PATH, or is removed after an error. MODE: whatever
// the umask is.
Status fill_and_rename(const Fd& fd, const std::string& text, std::optional<mode_t> mode, bool synced,
                       const std::string& temporary, const std::string& path) {
    Status done = fd ? Status{} : fail_errno("creating", errno);
    if (done && mode && ::fchmod(fd.get(), *mode) != 0) done = fail_errno("fchmod", errno);
    if (done) done = write_all(fd.get(), text);
    if (done && synced && ::fsync(fd.get()) != 0) done = fail_errno("fsync", errno);
    if (done && ::rename(temporary.c_str(), path.c_str()) != 0) done = fail_errno("rename", errno);
    if (done) return done;
    ::unlink(temporary.c_str());
    return tl::unexpected(done.error().in(path));
}

// By the temporary file PATH.new. What a crash left there, or somebody planted, is removed, not followed.
Status replace(const std::string& path, const std::string& text, unsigned mode, bool synced) {
    const std::string temporary = path + ".new";
    ::unlink(temporary.c_str());
    return fill_and_rename(create(temporary, mode), text, mode, synced, temporary, path);
}

}  // namespace

Result<std::string> read_all(int fd, std::size_t limit) {
    return read_until(Until::end, fd, limit);
}

Status write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0) {
            if (errno == EINTR) continue;
            return fail_errno("writing", errno);
        }
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
    const Fd fd = open_to_read(path);
    if (!fd) return fail_errno(path, errno);
    return read_all(fd.get(), limit).map_error([&](const Error& e) { return e.in(path); });
}

Result<std::optional<std::string>> read_if_there(const std::string& path, std::size_t limit) {
    auto text = read_file(path, limit);
    const int first = text ? 0 : text.error().code;
    if (!text) text = read_file(path, limit);
    if (!text && text.error().code == ENOENT && first == ENOENT) return std::nullopt;
    if (!text) return tl::unexpected(text.error());
    return std::optional(std::move(*text));
}

std::string read_first_line(const std::string& path) {
    const Fd fd = open_to_read(path);
    return fd ? read_until(Until::newline, fd.get(), kMaxFile).value_or("") : "";
}

Result<std::vector<std::string>> names_in(const std::string& folder) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
    if (!dir) return fail_errno(folder, errno);
    std::vector<std::string> names;
    for (;;) {
        errno = 0;
        const dirent* entry = ::readdir(dir.get());
        if (entry == nullptr && errno != 0) return fail_errno(folder, errno);
        if (entry == nullptr) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    std::ranges::sort(names, natural_less);
    return names;
}

std::vector<std::string> names_or_none(const std::string& folder) {
    return names_in(folder).value_or(std::vector<std::string>());
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

Status write_output(const std::string& path, const std::string& text) {
    struct stat st {};
    const bool there = ::lstat(path.c_str(), &st) == 0;
    if (there && !S_ISREG(st.st_mode)) return fail(path + ": exists and is not a regular file", EEXIST);
    std::optional<mode_t> mode;
    if (there) mode = st.st_mode & 0777;  // a new file never has a wider one
    const std::string temporary = fmt::format("{}.{:016x}", path, random_number());
    const Fd fd = create(temporary, mode.value_or(0666));
    if (!fd) return fail_errno(path + ": creating a temporary file in the same directory", errno);
    if (there) {
        (void)!::fchown(fd.get(), static_cast<uid_t>(-1), st.st_gid);
        (void)!::fchown(fd.get(), st.st_uid, static_cast<gid_t>(-1));
    }
    return fill_and_rename(fd, text, mode, true, temporary, path);
}

Status replace_file(const std::string& path, const std::string& text, unsigned mode) {
    if (auto done = replace(path, text, mode, true); !done) return done;
    const auto slash = path.rfind('/');
    const std::string dir = slash == std::string::npos ? "." : path.substr(0, slash);
    const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) return fail_errno(path + ": fsync of " + dir, errno);
    return {};
}

Status replace_state_file(const std::string& path, const std::string& text, unsigned mode) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    return replace_file(path, text, mode);
}

Status publish_file(const std::string& path, const std::string& text) {
    return replace(path, text, 0644, false);
}

Status remove_file(const std::string& path) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno(path + ": removing", errno);
    return {};
}

}  // namespace wq
