// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "service/budget.h"
#include "service/bus.h"

namespace wq {

// Finds out who calls the daemon, and limits the time spent for callers other than root.
//
// We ask the bus for the user of a caller's unique name, asynchronously: during a synchronous call,
// sd-bus reads all other messages into its own queue, which has no limit in bytes. Until the answer arrives,
// we hold a few calls of each caller. Further calls, and calls above the budget, are rejected at once
// (LimitsExceeded), or dropped if the caller wants no reply. Calls without reply from callers other than
// root are always dropped. So a flood of calls waits in the bus, which limits it, and each of its messages
// costs the daemon the same small amount of work.
class Callers {
  public:
    // Returns the result for an sd-bus handler.
    using Then = std::function<int(sd_bus_message* message, bool by_root)>;

    static constexpr std::size_t kMostKnown = 512;  // callers
    static constexpr unsigned kMostUnanswered = 4;  // calls per caller whose user is not known yet
    // Limits for unsent replies. dbus-daemon stops reading from us while it holds 127 MB; replies that
    // callers do not read then stay in our queue.
    static constexpr std::uint64_t kMostReplies = 64;
    static constexpr std::uint64_t kMostReplyBytes = 2'000'000;
    // Whether BUS has room for another reply of BYTES to a caller other than root.
    static bool has_room(sd_bus* bus, std::size_t bytes = 0);

    // Filters all calls on BUS, which must outlive this object.
    explicit Callers(sd_bus* bus);
    Callers(const Callers&) = delete;
    Callers& operator=(const Callers&) = delete;

    // For method handlers: calls THEN as soon as it is known whether root sent MESSAGE, possibly at once.
    int when_known(sd_bus_message* message, Then then);

  private:
    struct Held {
        MessagePtr message;
        Then then;
    };
    enum class Who { asked, root, other };
    struct Caller {
        Callers* all;
        std::string name;
        Who who = Who::asked;
        unsigned unanswered = 0;
        std::vector<Held> held = {};
        SlotPtr question = {};                    // the last one
        std::uint64_t timeout = 0;                // of the last question, in us
        std::vector<std::uint64_t> cookies = {};  // of all questions
    };

    static int on_message(sd_bus_message* message, void* self, sd_bus_error* error);
    static int on_answer(sd_bus_message* answer, void* caller, sd_bus_error* error);
    bool may_call(sd_bus_message* message);
    bool is_within_budget(sd_bus_message* message);
    Caller* find_or_ask(sd_bus_message* message);
    bool ask(Caller& caller, std::uint64_t timeout);  // us
    bool is_late_answer(sd_bus_message* message);
    void settle(Caller& caller, sd_bus_message* answer);
    void forget_known();

    sd_bus* bus_;
    Budget budget_;
    std::map<std::string, Caller, std::less<>> callers_;  // by unique name, which the bus never reuses
    SlotPtr filter_;
};

}  // namespace wq
