// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "base/result.h"
#include "service/bus.h"

namespace wq {

// Checks whether the sender of a message may give an order. Holds the pending questions to polkit of one bus
// connection. After the connection is closed, they get no answer.
class Authority {
  public:
    Authority() = default;
    Authority(const Authority&) = delete;  // questions refer to it
    Authority& operator=(const Authority&) = delete;

    // Runs ORDER for the sender of MESSAGE and replies. For root it runs at once. For others it runs when
    // polkit authorizes ACTION; this may need a password and does not block. While 16 users are being asked,
    // polkit decides about others without interaction. While 64 questions are pending, further requests are
    // rejected. Without polkit, only root is allowed. Returns the result for an sd-bus method handler.
    int carry_out(sd_bus_message* message, bool by_root, const char* action, std::function<Status()> order);

  private:
    struct Question {
        Authority* all;
        MessagePtr request;
        std::function<Status()> order;
        std::string id;     // to cancel the question; "" if no user is asked
        SlotPtr slot = {};  // the pending call; while it exists, polkit may answer
    };
    static int on_answer(sd_bus_message* answer, void* question, sd_bus_error* error);
    [[nodiscard]] std::size_t count_asked() const;

    std::list<Question> questions_;
    std::uint64_t number_ = 0;  // number of the last question to a user
};

}  // namespace wq
