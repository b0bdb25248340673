// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace wq {

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
