// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-event.h>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/journal.h"
#include "machine/paths.h"
#include "policy/load_policy.h"
#include "policy/policy.h"
#include "state/state_file.h"

namespace wq {

// Polls for changes of CPUs that send no uevent.
class CpuWatch {
  public:
    explicit CpuWatch(const Paths& paths) : paths_(paths) {}

    // Call it once, before the other functions.
    void start();
    // Whether the machine was suspended since the last call. A suspend takes CPUs offline and online again.
    [[nodiscard]] bool was_suspended();
    // Whether the online, present, possible or isolated CPUs changed since the last call. Without udev, no
    // event reports this.
    [[nodiscard]] bool changed();

  private:
    const Paths& paths_;
    std::int64_t suspended_ = 0;  // ns suspended since boot
    std::string cpus_;            // result of cpu_state()
};

// Detects a change of the hostname. On a real machine the kernel reports it (proc_sys_poll() wakes pollers of
// the file). The file of a test's tree cannot be polled, so changed() must be called from time to time.
class HostnameWatch {
  public:
    explicit HostnameWatch(const Paths& paths) : paths_(paths) {}
    HostnameWatch(const HostnameWatch&) = delete;
    HostnameWatch& operator=(const HostnameWatch&) = delete;
    ~HostnameWatch();

    // Calls WOKEN in EVENT's loop when the name may have changed.
    void start(sd_event* event, std::function<void()> woken);
    // Returns the name if it changed since the last call, or since start() at the first call.
    [[nodiscard]] std::optional<std::string> changed();

  private:
    static int on_change(sd_event_source* source, int fd, std::uint32_t events, void* self);

    const Paths& paths_;
    Fd file_;
    sd_event_source* source_ = nullptr;
    std::string name_;
    std::function<void()> woken_;
};

// Detects when the daemon has finished its work for now. Pages that were read for the work can be dropped
// then. Dropping them at every tick would only cause them to be read again.
class Quiet {
  public:
    // Call it after work that is not part of a tick or of a look at the traffic. The start counts as work.
    void worked() { busy_ = true; }
    // Call it at each tick. Returns true if there was no work since the last tick, but there was in the
    // interval before it.
    bool fell() {
        const bool quiet = !std::exchange(busy_, false);
        return std::exchange(was_busy_, !quiet) && quiet;
    }

  private:
    bool busy_ = true;      // since the last tick
    bool was_busy_ = true;  // in the interval before it
};

// Combines a burst of events: the work is due 200 ms after the last event, at most 1 s after the first.
// Times are microseconds of one monotonic clock; the caller passes the current time.
class Coalescer {
  public:
    static constexpr std::uint64_t kQuiet = 200'000;
    static constexpr std::uint64_t kMost = 1'000'000;

    void event(std::uint64_t now) {
        if (!first_) first_ = now;
        due_ = std::min(now + kQuiet, *first_ + kMost);
    }
    // When the work is due; empty if nothing is pending.
    [[nodiscard]] std::optional<std::uint64_t> due() const {
        return first_ ? std::optional(due_) : std::nullopt;
    }
    void done() { first_.reset(); }

  private:
    std::optional<std::uint64_t> first_;
    std::uint64_t due_ = 0;
};

// `wq-tunectl pause` and `resume`: whether experiments are paused. They are paused while a file exists, which
// survives restarts and reboots. RECORD writes it, because its disk may not answer: the order takes effect at
// once, and an error of the file is logged later. All constructor arguments must outlive this object.
class Pause {
  public:
    Pause(std::string path, RecordWriter& record, Log& log)
        : path_(std::move(path)), record_(record), log_(log) {}

    // Call it at the start. A file that cannot be examined counts as absent; the error is logged.
    void load();
    void set(bool paused);
    [[nodiscard]] bool is_set() const { return paused_; }

  private:
    std::string path_;
    RecordWriter& record_;
    Log& log_;
    bool paused_ = false;
};

// The policy for this host. ROOT, CONFIG: as in ServiceOptions.
tl::expected<Policy, PolicyErrors> load_host_policy(const std::string& root,
                                                    const std::optional<std::string>& config);
// Logs the first ten errors and the number of the others.
void log_policy_errors(Log& log, const PolicyErrors& errors);

}  // namespace wq
