// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/pause.h"

#include <fmt/format.h>
#include <syslog.h>

#include "base/file.h"

namespace wq {

void Pause::load() {
    const auto file = read_if_there(path_);
    paused_ = file && *file;
    if (!file) log_.write({LOG_WARNING, Event::none, file.error().text + "; experiments are not paused"});
    if (paused_)
        log_.write({LOG_NOTICE, Event::none, "experiments are paused; `wq-tunectl resume` ends that"});
}

void Pause::set(bool paused) {
    if (paused != paused_)
        log_.write({LOG_NOTICE, Event::none,
                    paused ? "experiments are paused by an order" : "experiments are resumed by an order"});
    paused_ = paused;
    record_.put(
        path_, [path = path_, paused] { return paused ? replace_state_file(path, "") : remove_file(path); },
        [this](const Status& done) {
            if (!done)
                log_.write(
                    {LOG_WARNING, Event::none,
                     fmt::format("{}; the order is in force only until the daemon ends", done.error().text)});
        });
}

}  // namespace wq
