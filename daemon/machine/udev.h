// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <libudev.h>
#include <systemd/sd-event.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace wq {

struct UdevUnref {
    void operator()(udev* p) const { ::udev_unref(p); }
    void operator()(udev_monitor* p) const { ::udev_monitor_unref(p); }
    void operator()(udev_device* p) const { ::udev_device_unref(p); }
    void operator()(udev_queue* p) const { ::udev_queue_unref(p); }
};

// Whether a rule set WQ_TUNED_IGNORE to a value other than "0" for this workqueue of the machine. Needs no
// monitor. Empty: not known.
std::optional<bool> udev_opted_out(const std::string& workqueue);
// The reason for a workqueue that is opted out by udev.
inline constexpr const char* kOptedOutByUdev = "opted out by udev (WQ_TUNED_IGNORE)";
// The reason for a workqueue while opted_out() is not known.
inline constexpr const char* kNotProcessedByUdev = "udev has not processed it yet";

// udev's view of workqueues and CPUs. It reports events of devices that our rules tagged
// (60-wq-tuned.rules).
class Udev {
  public:
    // cpu_online: a CPU came online; cpu: any other event of a CPU; lost: the queue overflowed, so anything
    // may have changed.
    enum class Change { workqueue, cpu, cpu_online, lost };

    static Result<std::unique_ptr<Udev>> start(sd_event* event, std::function<void(Change)> on_change);
    ~Udev() { ::sd_event_source_disable_unref(source_); }

    // Like udev_opted_out(). Empty: ask again later. Either udev is busy and has not processed this workqueue
    // yet, as at boot, and its event says when to ask again; or libudev could not read the device. If udev is
    // not busy, there will be no more information: udev does not run, or it processed the workqueue before
    // our rules were installed, which leaves nothing in its database.
    [[nodiscard]] std::optional<bool> opted_out(const std::string& workqueue) const;

  private:
    Udev() = default;
    static int on_readable(sd_event_source* source, int fd, unsigned events, void* self);
    void drain();

    std::unique_ptr<udev, UdevUnref> udev_;
    std::unique_ptr<udev_monitor, UdevUnref> monitor_;
    sd_event_source* source_ = nullptr;
    std::function<void(Change)> on_change_;
};

}  // namespace wq
