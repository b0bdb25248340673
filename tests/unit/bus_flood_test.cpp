// SPDX-License-Identifier: LGPL-2.1-or-later
// A user floods the methods of the daemon, on a real bus with the installed policy.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "../soak/flood.h"
#include "as_nobody.h"
#include "private_bus.h"
#include "resident.h"
#include "service/bus.h"
#include "service/server.h"

namespace wq {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// The resident memory of the daemon, measured every 10 ms.
struct Watch {
    unsigned long before = test::resident_memory("self");  // kB
    unsigned long most = 0;                                // kB above `before`
    static int on_time(sd_event_source* source, std::uint64_t /*now*/, void* userdata) {
        auto* self = static_cast<Watch*>(userdata);
        const unsigned long resident = test::resident_memory("self");
        self->most = std::max(self->most, resident - std::min(resident, self->before));
        ::sd_event_source_set_time_relative(source, 10'000);
        return ::sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    }
};

BusHandlers handlers() {
    const auto order = [](const std::string&, const std::string&) { return Status{}; };
    // The status is as long as that of 300 targets.
    return {.status = [](bool) { return std::string(300'000, ' '); },
            .pin = order,
            .unpin = [](const std::string&) { return Status{}; },
            .revert = [](const std::optional<std::string>&) { return Status{}; },
            .trial = order,
            .reload = [] { return Status{}; },
            .pause = [](bool) { return Status{}; }};
}

// The daemon's end of the bus, in a process of its own until SIGTERM.
class Daemon {
  public:
    Daemon() {
        if (::pipe(ends_) != 0) return;
        sigset_t mask;
        ::sigemptyset(&mask);
        ::sigaddset(&mask, SIGTERM);
        ::sigprocmask(SIG_BLOCK, &mask, nullptr);
        pid_ = ::fork();
        if (pid_ != 0) {
            ::sigprocmask(SIG_UNBLOCK, &mask, nullptr);
            return;
        }
        const std::string text = serve().dump();
        ::_exit(::write(ends_[1], text.data(), text.size()) < 0 ? 1 : 0);
    }
    ~Daemon() {
        if (pid_ > 0) (void)end();
    }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    void signal(int number) const { ::kill(pid_, number); }
    // Stops the daemon and returns {"most_kb": ...}.
    json end() {
        ::kill(pid_, SIGTERM);
        ::close(ends_[1]);
        std::string text(4096, '\0');
        text.resize(
            static_cast<std::size_t>(std::max<ssize_t>(::read(ends_[0], text.data(), text.size()), 0)));
        ::close(ends_[0]);
        ::waitpid(std::exchange(pid_, -1), nullptr, 0);
        return json::parse(text, nullptr, false);
    }

  private:
    static json serve() {
        Journal journal;
        sd_event* event = nullptr;
        if (::sd_event_default(&event) < 0) return "no loop";
        const auto server = BusServer::start(event, journal, handlers());
        if (!server) return server.error().text;
        Watch watch;
        sd_event_source* timer = nullptr;
        ::sd_event_add_signal(event, nullptr, SIGTERM, nullptr, nullptr);
        ::sd_event_add_time_relative(event, &timer, CLOCK_MONOTONIC, 10'000, 1000, Watch::on_time, &watch);
        ::sd_event_loop(event);
        return {{"most_kb", watch.most}};
    }
    int ends_[2] = {-1, -1};
    pid_t pid_ = -1;
};

Status order() {
    const auto bus = open_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    const auto answer = call_daemon(bus->get(), "Pin", {"kcryptd", "smt"});
    if (!answer) return tl::unexpected(answer.error());
    return {};
}

class BusFloodBase : public testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "needs root to change the user";
        if (!bus_.is_there()) GTEST_SKIP() << "there is no dbus-daemon";
        for (int i = 0; i < 500 && !order(); i++) ::usleep(10'000);
        ASSERT_TRUE(order());
    }
    test::PrivateBus bus_;
    Daemon daemon_;
};

class BusFlood : public BusFloodBase, public testing::WithParamInterface<test::Flood> {};

// The first message that the daemon reads is an order of root, and the queue behind it is full (127 MB). Then
// dbus-daemon drops its own replies, also the one that says who sent the order.
TEST_F(BusFloodBase, RootIsObeyedAlthoughTheBusDropsItsAnswer) {
    daemon_.signal(SIGSTOP);
    const pid_t root = ::fork();
    if (root == 0) {
        const auto done = order();
        if (!done) std::fprintf(stderr, "%s\n", done.error().text.c_str());
        ::_exit(done ? 0 : 1);
    }
    ::sleep(1);  // the order is in the queue
    const pid_t flooder = ::fork();
    if (flooder == 0) {
        if (::setuid(65534) == 0) (void)test::flood(60'000'000, {.junk = 256 * 1024});
        ::_exit(1);
    }
    unsigned long before = 0;  // kB of dbus-daemon, which has the queue
    unsigned long held = 0;
    // Root's order times out after 25 s.
    for (unsigned i = 0; i < 10 && (held < 130'000 || held != before); i++) {
        ::sleep(1);
        before = std::exchange(held, test::resident_memory(std::to_string(bus_.pid()).c_str()));
    }
    ::kill(flooder, SIGKILL);
    ::waitpid(flooder, nullptr, 0);
    daemon_.signal(SIGCONT);
    int status = -1;
    ::waitpid(root, &status, 0);
    EXPECT_EQ(status, 0) << "root's order failed";
    if (held < 130'000) GTEST_SKIP() << "the queue was not full after 10 s";
}

// The time that root waits is measured in a guest (tests/guest/checks/flood.sh), where no other load runs.
TEST_P(BusFlood, CostsTheDaemonLittleAndRootIsObeyed) {
    constexpr std::uint64_t kFlood = 4'000'000;  // us
    const pid_t flooder = ::fork();
    if (flooder == 0) {
        const std::string sent =
            test::as_nobody([] { return std::to_string(test::flood(kFlood, GetParam())); });
        ::_exit(std::atol(sent.c_str()) > 1000 ? 0 : 1);
    }
    unsigned orders = 0;
    for (const auto end = Clock::now() + std::chrono::microseconds(kFlood + 1'000'000); Clock::now() < end;
         orders++) {
        const auto done = order();
        EXPECT_TRUE(done) << done.error().text;
        if (!done) break;
        ::usleep(50'000);
    }
    int status = -1;
    ::waitpid(flooder, &status, 0);
    EXPECT_EQ(status, 0) << "there was no flood";
    const json noticed = daemon_.end();
    ASSERT_TRUE(noticed.is_object()) << noticed;
    EXPECT_GT(orders, 0U);
#ifndef __SANITIZE_ADDRESS__  // freed memory stays resident with ASan
    EXPECT_LT(noticed["most_kb"], 4096) << orders << " orders";
#endif
}

// With a sanitizer the daemon reads so slowly that with 256 KB per call root waits longer than the timeout of
// wq-tunectl.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kJunk = 16 * 1024;
#else
constexpr std::size_t kJunk = 256 * 1024;
#endif

INSTANTIATE_TEST_SUITE_P(Calls, BusFlood,
                         testing::Values(test::Flood{}, test::Flood{.junk = kJunk},
                                         test::Flood{.unread = true}),
                         [](const auto& info) {
                             if (info.param.unread) return "WhoseRepliesNobodyReads";
                             return info.param.junk == 0 ? "WithoutArguments" : "WithLongArguments";
                         });

}  // namespace
}  // namespace wq
