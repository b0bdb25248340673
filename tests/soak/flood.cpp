// SPDX-License-Identifier: LGPL-2.1-or-later
#include "flood.h"

#include <systemd/sd-bus.h>

#include <chrono>
#include <vector>

namespace wq::test {
namespace {

bool send_call(sd_bus* bus, const std::vector<unsigned char>& argument, bool wants_reply) {
    sd_bus_message* message = nullptr;
    int r = ::sd_bus_message_new_method_call(bus, &message, "org.wqtuned1", "/org/wqtuned1",
                                             "org.wqtuned1.Manager", "GetStatus");
    if (r >= 0) r = ::sd_bus_message_set_expect_reply(message, wants_reply ? 1 : 0);
    if (r >= 0 && !argument.empty())
        r = ::sd_bus_message_append_array(message, 'y', argument.data(), argument.size());
    if (r >= 0) r = ::sd_bus_send(bus, message, nullptr);
    ::sd_bus_message_unref(message);
    return r >= 0;
}

}  // namespace

unsigned long flood(std::uint64_t us, const Flood& kind) {
    using Clock = std::chrono::steady_clock;
    constexpr unsigned kAtOnce = 64;  // calls, then flood() waits until the bus has taken them
    sd_bus* bus = nullptr;
    if (::sd_bus_open_system(&bus) < 0) return 0;
    const std::vector<unsigned char> nothing;
    const std::vector<unsigned char> argument(kind.junk, 'x');
    unsigned long sent = 0;
    for (const auto end = Clock::now() + std::chrono::microseconds(us); Clock::now() < end;) {
        if (!send_call(bus, sent % 2 == 1 ? argument : nothing, kind.unread)) break;
        if (++sent % kAtOnce == 0 && ::sd_bus_flush(bus) < 0) break;
    }
    ::sd_bus_close_unref(bus);
    return sent;
}

}  // namespace wq::test
