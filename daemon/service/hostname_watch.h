// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-event.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/fd.h"
#include "kernel/paths.h"

namespace wq {

// Notices that the host has another name. On a machine the kernel tells (proc_sys_poll() wakes whoever polls
// the file); the file of a test's tree cannot be polled, so that changed() has to be asked from time to time.
class HostnameWatch {
  public:
    explicit HostnameWatch(const Paths& paths) : paths_(paths) {}
    HostnameWatch(const HostnameWatch&) = delete;
    HostnameWatch& operator=(const HostnameWatch&) = delete;
    ~HostnameWatch();

    // WOKEN is called from EVENT's loop where the name may be another.
    void start(sd_event* event, std::function<void()> woken);
    // The name, if it is another than at start() and at the last call.
    [[nodiscard]] std::optional<std::string> changed();

  private:
    static int on_change(sd_event_source* source, int fd, std::uint32_t events, void* self);

    const Paths& paths_;
    Fd file_;
    sd_event_source* source_ = nullptr;
    std::string name_;
    std::function<void()> woken_;
};

}  // namespace wq
