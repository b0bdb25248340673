// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench_left.h"

#include <fmt/format.h>
#include <syslog.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "ctl/lab/scope_switcher.h"

namespace wq::bench {
namespace {

using nlohmann::json;

constexpr std::string_view kPrefix = "wq-bench-";
constexpr std::size_t kDigits = 16;

// Checks NAME although only root can write the file, because it becomes part of a path.
bool is_ours(const std::string& name) {
    return name.starts_with(kPrefix) && name.size() == kPrefix.size() + kDigits &&
           name.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string::npos;
}

Status remove_all(Devices& devices, const Left& left, Log& log) {
    if (auto removed = devices.remove_crypt(left.name); !removed) return removed;
    if (auto removed = devices.remove_ram(left.name); !removed) return removed;
    if (left.driver && !devices.unload_driver())
        log.write({LOG_NOTICE, Event::none, "null_blk stays loaded: somebody uses it"});
    return {};
}

// Removes the devices that STORE names. Returns whether no device is left.
bool remove_devices(Devices& devices, const LeftStore& store, Log& log) {
    const auto left = store.load();
    if (!left) {
        log.write({LOG_ERR, Event::none, left.error().text});
        return false;
    }
    if (!*left) return true;
    auto done = remove_all(devices, **left, log);
    if (done) done = store.clear();
    if (done) {
        log.write({LOG_INFO, Event::none, (*left)->name + ": removed"});
        return true;
    }
    log.write({LOG_ERR, Event::none,
               fmt::format("{} IS NOT REMOVED: {}; `wq-tunectl bench --restore` tries again", (*left)->name,
                           done.error().text)});
    return false;
}

}  // namespace

std::string new_name() {
    return fmt::format("{}{:016x}", kPrefix, random_number());
}

Result<std::optional<Left>> LeftStore::load() const {
    const auto text = read_if_there(path_);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return std::nullopt;
    try {
        const json document = json::parse(**text);
        Left left{document.at("name").get<std::string>(), document.at("driver").get<bool>()};
        if (!is_ours(left.name)) return fail(path_ + ": not a name of ours", EBADMSG);
        return std::optional(std::move(left));
    } catch (const json::exception& e) {
        return fail(path_ + ": " + json_error_text(e.what()), EBADMSG);
    }
}

Status LeftStore::save(const Left& left) const {
    const json document{{"version", 1}, {"name", left.name}, {"driver", left.driver}};
    return replace_file(path_, document.dump(1) + "\n", 0600);
}

Status LeftStore::clear() const {
    return remove_file(path_);
}

// Restores the scope first, while the workqueue certainly exists. After a deferred removal, the kernel may
// still be destroying the workqueue when the device is no longer visible, and a read or write could fail. So
// the entry of the scope is dropped even if the device stays.
bool remove_left(const Paths& paths, Devices& devices, Log& log) {
    const bool back = ab::restore_scopes(paths, log);
    return remove_devices(devices, LeftStore(paths), log) && back;
}

}  // namespace wq::bench
