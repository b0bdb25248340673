// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <unistd.h>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace wq {

// Default limit for files of /sys and /proc, in bytes. A sysfs file is at most a page, except CPU lists.
inline constexpr std::size_t kMaxFile = 65536;

// Reads the whole file PATH. Errors: errno of open or read; EFBIG for more than LIMIT bytes. The error text
// contains the path.
Result<std::string> read_file(const std::string& path, std::size_t limit = kMaxFile);

// Like read_file(), or nullopt if PATH does not exist. Tries again after an error: PATH counts as absent
// only if both tries return ENOENT, because the caller may then write a new file.
Result<std::optional<std::string>> read_if_there(const std::string& path, std::size_t limit = kMaxFile);

// The first line of PATH, without its newline and otherwise as it is: a name of device mapper may end with a
// space. Reads no further, so the rest of the file may be of any size (/proc/stat of a large machine). Empty
// if PATH cannot be read or the line is longer than kMaxFile, for callers that treat this like an empty file.
std::string read_first_line(const std::string& path);

// The names in FOLDER, sorted, without "." and "..". Errors: errno of opendir or readdir, never a part of the
// names. The error text contains the path.
Result<std::vector<std::string>> names_in(const std::string& folder);

// Like names_in(), but empty after any error, for callers that treat this like an empty folder.
std::vector<std::string> names_or_none(const std::string& folder);

// Whether PATH exists and can be reached. Follows links.
bool exists(const std::string& path);

// Replaces PATH by a file of this MODE, whatever the umask is: writes PATH.new (what is there is removed, not
// followed), fsync, rename, fsync of the directory. After an error, PATH is unchanged, unless only the fsync
// of the directory failed: then PATH has the new text.
Status replace_file(const std::string& path, const std::string& text, unsigned mode = 0644);

// Like replace_file(), but also creates the folder. systemd creates it for the unit (StateDirectory=), but
// not for a daemon that is started by hand.
Status replace_state_file(const std::string& path, const std::string& text, unsigned mode = 0644);

// Removes PATH if it exists.
Status remove_file(const std::string& path);

// Like replace_file() without fsync, for files that need not survive a crash of the machine.
Status publish_file(const std::string& path, const std::string& text);

// Replaces PATH, a path from the user in a directory that others may be able to write to: writes a temporary
// file with a random name in the same directory, fsync, rename. A replaced file keeps its mode and, if we
// have the permission, its owner and group; a new file gets 0666 minus the umask. Errors: EEXIST if PATH
// exists and is not a regular file. After any error, PATH is unchanged.
Status write_output(const std::string& path, const std::string& text);

// Owns a file descriptor and closes it once.
class Fd {
  public:
    explicit Fd(int fd = -1) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd() {
        if (fd_ >= 0) ::close(fd_);
    }

    [[nodiscard]] int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_;
};

// Reads FD to its end; handles EINTR and short reads. Error: EFBIG for more than LIMIT bytes.
Result<std::string> read_all(int fd, std::size_t limit);
// Writes all of TEXT to FD; handles EINTR and short writes.
Status write_all(int fd, std::string_view text);

}  // namespace wq
