// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/kworkers.h"

#include "base/file.h"

namespace wq::ab {

unsigned count_kworkers(const Paths& paths) {
    unsigned count = 0;
    for (const std::string& name : names_or_none(paths.proc())) {
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const auto comm = read_file(paths.proc() + "/" + name + "/comm");  // it may have ended
        if (comm && comm->starts_with("kworker/u")) count++;
    }
    return count;
}

}  // namespace wq::ab
