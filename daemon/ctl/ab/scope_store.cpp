// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/scope_store.h"

#include <syslog.h>

#include "engine/restore.h"
#include "engine/scope_writer.h"
#include "kernel/workqueue_fs.h"

namespace wq::ab {

Status open_scope_store(BaselineStore& store, const ScopeFiles& files, const std::string& target) {
    if (auto loaded = store.load(); !loaded) return loaded;
    if (store.find(target) == nullptr) return {};
    if (!is_back(files, *store.find(target)))
        return fail(target +
                    ": it may hold a setting that wq-tuned left; `wq-tunectl undo` prints the way back");
    store.remove(target);
    return store.save();
}

bool restore_scopes(const Paths& paths, Log& log) {
    BaselineStore store(paths.baseline());
    if (const auto loaded = store.load(); !loaded) {
        log.write({LOG_ERR, Event::none, loaded.error().text});
        return false;
    }
    WorkqueueFs files(paths);
    return restore_entries(files, store, log, true) == 0;
}

}  // namespace wq::ab
