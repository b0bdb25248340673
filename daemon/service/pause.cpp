// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/pause.h"

#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"

namespace wq {
namespace {

Status put_file(const std::string& path) {
    // The unit's StateDirectory= has made the folder; a daemon run by hand makes it itself.
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    return replace_file(path, "");
}

Status remove_file(const std::string& path) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno(path, errno);
    return {};
}

}  // namespace

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
                    paused ? "experiments are paused by an order" : "experiments go on, by an order"});
    paused_ = paused;
    record_.put(
        path_, [path = path_, paused] { return paused ? put_file(path) : remove_file(path); },
        [this](const Status& done) {
            if (!done)
                log_.write({LOG_WARNING, Event::none,
                            fmt::format("{}; this order ends with the daemon", done.error().text)});
        });
}

}  // namespace wq
