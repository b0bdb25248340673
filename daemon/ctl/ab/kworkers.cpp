// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/kworkers.h"

#include <dirent.h>

#include <memory>

#include "base/file.h"

namespace wq::ab {

unsigned count_kworkers(const Paths& paths) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(paths.proc().c_str()), ::closedir);
    unsigned count = 0;
    while (dir) {
        const dirent* entry = ::readdir(dir.get());
        if (entry == nullptr) break;
        const std::string name = entry->d_name;
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const auto comm = read_file(paths.proc() + "/" + name + "/comm");  // it may have ended
        if (comm && comm->starts_with("kworker/u")) count++;
    }
    return count;
}

}  // namespace wq::ab
