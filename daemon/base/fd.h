// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace wq {

// Owns a file descriptor; closes it once.
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

// Everything from FD to its end, EINTR and short reads seen through. EFBIG beyond LIMIT bytes.
Result<std::string> read_all(int fd, std::size_t limit);
// All of TEXT to FD, EINTR and short writes seen through.
Status write_all(int fd, std::string_view text);

}  // namespace wq
