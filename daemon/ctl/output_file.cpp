// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace wq::ctl {

Status check_output(const std::string& path) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
        return fail(path + ": exists and is not a regular file", EEXIST);
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
        return fail_errno(path + ": its directory", errno);
    if (slash != std::string::npos && slash + 1 == path.size()) return fail(path + ": is a directory");
    return {};
}

}  // namespace wq::ctl
