// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/udev.h"

#include <sys/epoll.h>

#include <cerrno>
#include <string_view>

namespace wq {
namespace {

constexpr const char* kTag = "wq-tuned";
// Enough for several thousand events. If it overflows anyway, we rescan everything.
constexpr int kReceiveBuffer = 8 << 20;

bool is_busy(udev* context) {
    const std::unique_ptr<udev_queue, UdevUnref> queue(::udev_queue_new(context));
    return queue && ::udev_queue_get_queue_is_empty(queue.get()) == 0;
}

std::optional<bool> is_opted_out(udev* context, const std::string& workqueue) {
    const std::unique_ptr<udev_device, UdevUnref> device(
        ::udev_device_new_from_subsystem_sysname(context, "workqueue", workqueue.c_str()));
    // Only these two mean that udev knows no such device. Other errors (ENOMEM, EMFILE) say nothing.
    if (!device && errno != ENODEV && errno != ENOENT) return std::nullopt;
    if (!device) return false;
    // Check this first: if udev becomes idle later, it may have processed the workqueue in between.
    const bool busy = is_busy(context);
    if (::udev_device_get_is_initialized(device.get()) == 0 && busy) return std::nullopt;
    const char* value = ::udev_device_get_property_value(device.get(), "WQ_TUNED_IGNORE");
    return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace

Result<std::unique_ptr<Udev>> Udev::start(sd_event* event, std::function<void(Change)> on_change) {
    std::unique_ptr<Udev> self(new Udev);
    self->on_change_ = std::move(on_change);
    self->udev_.reset(::udev_new());
    if (!self->udev_) return fail_errno("udev", errno);
    self->monitor_.reset(::udev_monitor_new_from_netlink(self->udev_.get(), "udev"));
    udev_monitor* monitor = self->monitor_.get();
    if (monitor == nullptr) return fail_errno("udev monitor", errno);
    int r = ::udev_monitor_filter_add_match_tag(monitor, kTag);
    (void)::udev_monitor_set_receive_buffer_size(monitor,
                                                 kReceiveBuffer);  // needs privilege; optional
    if (r >= 0) r = ::udev_monitor_enable_receiving(monitor);
    if (r >= 0)
        r = ::sd_event_add_io(event, &self->source_, ::udev_monitor_get_fd(monitor), EPOLLIN, on_readable,
                              self.get());
    if (r < 0) return fail_errno("udev monitor", -r);
    return self;
}

int Udev::on_readable(sd_event_source* /*source*/, int /*fd*/, unsigned /*events*/, void* self) {
    static_cast<Udev*>(self)->drain();
    return 0;
}

void Udev::drain() {
    for (;;) {
        errno = 0;
        const std::unique_ptr<udev_device, UdevUnref> device(::udev_monitor_receive_device(monitor_.get()));
        if (!device) {
            if (errno == ENOBUFS) on_change_(Change::lost);
            if (errno == ENOBUFS || errno == EINTR) continue;
            return;
        }
        const char* subsystem = ::udev_device_get_subsystem(device.get());
        if (subsystem == nullptr) continue;
        const char* action = ::udev_device_get_action(device.get());
        const bool online = action != nullptr && std::string_view(action) == "online";
        if (std::string_view(subsystem) == "cpu") on_change_(online ? Change::cpu_online : Change::cpu);
        if (std::string_view(subsystem) == "workqueue") on_change_(Change::workqueue);
    }
}

std::optional<bool> Udev::opted_out(const std::string& workqueue) const {
    return is_opted_out(udev_.get(), workqueue);
}

std::optional<bool> udev_opted_out(const std::string& workqueue) {
    const std::unique_ptr<udev, UdevUnref> context(::udev_new());
    return context ? is_opted_out(context.get(), workqueue) : std::nullopt;
}

}  // namespace wq
