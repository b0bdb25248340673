// SPDX-License-Identifier: LGPL-2.1-or-later
#include "engine/lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>

namespace wq {
namespace {

constexpr int kLockTries = 20;
constexpr useconds_t kLockPause = 100'000;  // us

}  // namespace

Result<Fd> take_lock(const Paths& paths) {
    std::error_code error;
    std::filesystem::create_directories(paths.run(), error);
    if (error) return fail_errno(paths.run(), error.value());
    Fd fd(::open(paths.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return fail_errno(paths.lock(), errno);
    for (int i = 0; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == kLockTries)
            return fail(paths.lock() +
                            ": another process holds the lock (wq-tuned, wq-tuned-restore, "
                            "`wq-tunectl ab` or `bench`)",
                        errno);
        ::usleep(kLockPause);
    }
    return fd;
}

}  // namespace wq
