// SPDX-License-Identifier: LGPL-2.1-or-later
// A bus that accepts connections and never answers: no caller waits for it longer than its timeout.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "private_bus.h"
#include "service/bus.h"

namespace wq {
namespace {

// Whether RUN returned true within SECONDS, in a process of its own.
bool in_time(unsigned seconds, const std::function<bool()>& run) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(seconds);
        ::_exit(run() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0;
}

class BusSilent : public testing::Test {
  protected:
    test::SilentBus bus_;
};

TEST_F(BusSilent, IsNotOpened) {
    EXPECT_TRUE(in_time(10, [] {
        const auto bus = open_system_bus();
        return !bus && bus.error().code == ETIMEDOUT;
    }));
}

TEST_F(BusSilent, DoesNotKeepTheDaemonFromStartingWorkingAndStopping) {
    EXPECT_TRUE(in_time(10, [] {
        Journal journal;
        sd_event* event = nullptr;
        ::sd_event_default(&event);
        BusServer server(event, journal, {});
        server.connect();
        server.wait();
        ::sd_event_add_time_relative(event, nullptr, CLOCK_MONOTONIC, 100'000, 0, nullptr, nullptr);
        ::sd_event_loop(event);
        return !server.is_restarting() && server.system_state().empty();
    }));
}

}  // namespace
}  // namespace wq
