// SPDX-License-Identifier: LGPL-2.1-or-later
#include "as_nobody.h"

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace wq::test {

std::string as_nobody(const std::function<std::string()>& run) {
    constexpr uid_t kNobody = 65534;
    int ends[2];
    if (::pipe(ends) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
        const bool dropped = ::geteuid() != 0 ||
                             (::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
                              ::setresuid(kNobody, kNobody, kNobody) == 0);
        const std::string text = dropped ? run() : "still root";
        ::_exit(::write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
    }
    ::close(ends[1]);
    std::string text(4096, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], text.data(), text.size()), 0)));
    ::close(ends[0]);
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0 ? text : "the child failed";
}

}  // namespace wq::test
