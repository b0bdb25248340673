// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "service/budget.h"
#include "service/bus.h"

namespace wq {

// Who calls the daemon, and how much of its time callers other than root may take.
//
// The user behind a caller's unique name is asked of the bus once, and nobody waits for the answer: while a
// call of sd-bus waits, sd-bus reads everything else into its own queue, which has no bound in bytes. Until
// the answer is there a few calls of each caller are held; what comes beyond that or beyond the budget is
// refused at once (LimitsExceeded), or dropped where no reply is wanted. Of others than root, calls that want
// no reply are dropped. So a flood waits in the bus, which bounds it, and each of its messages costs the
// daemon the same small work.
class Callers {
  public:
    // Returns what a handler of sd-bus is to return.
    using Then = std::function<int(sd_bus_message* message, bool by_root)>;

    static constexpr std::size_t kMostKnown = 512;  // callers
    static constexpr unsigned kMostUnanswered = 4;  // calls of a caller whose user is not known yet
    static constexpr std::uint64_t kMostReplies =
        64;  // that wait to be sent, beyond which others are refused

    // Looks at all calls that come over BUS, which must outlive this.
    explicit Callers(sd_bus* bus);
    Callers(const Callers&) = delete;
    Callers& operator=(const Callers&) = delete;

    // For a method's handler: calls THEN as soon as it is known whether root sent MESSAGE, maybe at once.
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
        SlotPtr question = {};
    };

    static int on_message(sd_bus_message* message, void* self, sd_bus_error* error);
    static int on_answer(sd_bus_message* answer, void* caller, sd_bus_error* error);
    bool may_call(sd_bus_message* message);
    bool is_within_budget(sd_bus_message* message);
    Caller* find_or_ask(sd_bus_message* message);
    bool ask(Caller& caller, sd_bus_message* message);
    void forget_known();

    sd_bus* bus_;
    Budget budget_;
    std::map<std::string, Caller, std::less<>> callers_;  // by unique name, which a bus gives only once
    SlotPtr filter_;
};

}  // namespace wq
