// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/restore_left.h"

#include <fmt/format.h>
#include <syslog.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "service/bus.h"

namespace wq::ab {

namespace {

bool may_be_ours(const LeftFile& left, const std::string& content) {
    return left.any || std::any_of(left.ours.begin(), left.ours.end(),
                                   [&](const std::string& ours) { return is_same_value(ours, content); });
}

// Each operator() restores one kind of Left and returns whether nothing is left.
class Restorer {
  public:
    Restorer(ValueFiles& files, const LeftStore& store, const Shell& shell, Log& log, bool again)
        : files_(files), store_(store), shell_(shell), log_(log), again_(again) {}

    bool operator()(const LeftFile& left) {
        const auto now = files_.read(left.path);
        if (!now && (now.error().code == ENOENT || now.error().code == ENODEV))
            return cleared(LOG_NOTICE, Event::none, now.error().text + "; nothing to put back");
        if (!now) return stayed(now.error().text);
        if (is_same_value(*now, left.original))
            return cleared(LOG_DEBUG, Event::none, left.path + ": is back");
        if (!may_be_ours(left, *now))
            return cleared(LOG_NOTICE, Event::external,
                           fmt::format("{}: has '{}', which an external writer wrote; left as it is",
                                       left.path, value_in(*now)));
        if (const auto back = put_value_back(files_, left.path, left.original); !back)
            return stayed(back.error().text);
        return cleared(LOG_INFO, Event::restored,
                       fmt::format("{}: back to '{}'", left.path, value_in(left.original)));
    }

    bool operator()(const LeftArm& left) {
        if (left.failed && !again_) {
            log_.write({LOG_INFO, Event::none,
                        fmt::format("arm {}: its undo failed; `wq-tunectl ab --restore` runs it again",
                                    printable(left.name))});
            return false;
        }
        if (const auto undone = undo(store_, left, shell_); !undone) {
            log_.write({LOG_ERR, Event::quarantined, undone.error().text});
            return false;
        }
        log_.write({LOG_INFO, Event::restored, fmt::format("arm {}: undone", printable(left.name))});
        return true;
    }

  private:
    bool cleared(int priority, Event event, const std::string& text) {
        log_.write({priority, event, text});
        const auto done = store_.clear();
        if (!done) log_.write({LOG_ERR, Event::none, done.error().text});
        return done.has_value();
    }
    bool stayed(const std::string& text) {
        log_.write({LOG_ERR, Event::quarantined,
                    "NOT PUT BACK: " + text + "; `wq-tunectl ab --restore` tries again"});
        return false;
    }

    ValueFiles& files_;
    const LeftStore& store_;
    const Shell& shell_;
    Log& log_;
    bool again_;
};

}  // namespace

bool restore_left(ValueFiles& files, const LeftStore& store, const Shell& shell, Log& log, bool again) {
    const auto left = store.load();
    if (!left) {
        log.write({LOG_ERR, Event::none, left.error().text});
        return false;
    }
    return !*left || std::visit(Restorer(files, store, shell, log, again), **left);
}

namespace {

constexpr std::uint64_t kBusTimeout = 2'000'000;  // us
constexpr unsigned kLooks = 100;
constexpr useconds_t kPause = 20'000;  // us, between two looks

// Returns a negative errno if the message cannot be built, like sd-bus.
int fill(sd_bus_message* message, const std::string& unit, const std::string& command, pid_t pid) {
    const std::string description = "Puts back what wq-tunectl " + command + " has set";
    int r = ::sd_bus_message_append(message, "ss", unit.c_str(), "fail");
    if (r < 0) return r;
    return ::sd_bus_message_append(message, "a(sv)a(sa(sv))", 3,  //
                                   "Description", "s", description.c_str(), "CollectMode", "s",
                                   "inactive-or-failed",  //
                                   "PIDs", "au", 1, static_cast<std::uint32_t>(pid), 0);
}

Status ask_systemd(const std::string& unit, const std::string& command, pid_t pid) {
    const auto bus = open_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    sd_bus_message* made = nullptr;
    int r = ::sd_bus_message_new_method_call(bus->get(), &made, "org.freedesktop.systemd1",
                                             "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
                                             "StartTransientUnit");
    const MessagePtr message(made);
    if (r >= 0) r = fill(message.get(), unit, command, pid);
    if (r >= 0) r = ::sd_bus_call(bus->get(), message.get(), kBusTimeout, nullptr, nullptr);
    if (r < 0) return fail_errno(unit, -r);
    return {};
}

}  // namespace

Status into_own_scope(pid_t pid, const std::string& command) {
    if (::sd_booted() <= 0) return {};
    const std::string unit = fmt::format("wq-tunectl-{}-{}.scope", command, pid);
    if (auto asked = ask_systemd(unit, command, pid); !asked) return asked;
    // The reply only means that a job was queued; the process moves when the job runs.
    for (unsigned i = 0; i < kLooks; i++) {
        const auto cgroup = read_file(fmt::format("/proc/{}/cgroup", pid));
        if (cgroup && cgroup->find(unit) != std::string::npos) return {};
        ::usleep(kPause);
    }
    return fail(unit + ": did not start", ETIMEDOUT);
}

}  // namespace wq::ab
