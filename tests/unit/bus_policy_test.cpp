// SPDX-License-Identifier: LGPL-2.1-or-later
// conf/org.wqtuned1.conf: the bus delivers to the daemon only what root sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "as_nobody.h"
#include "private_bus.h"
#include "service/bus.h"

namespace wq {
namespace {

struct Call {
    const char* path;
    const char* interface;
    const char* member;
};
constexpr std::array kCalls = {
    Call{kBusPath, kBusInterface, "Pin"}, Call{kBusPath, "org.freedesktop.DBus.Properties", "GetAll"},
    Call{"/", "org.freedesktop.DBus.Introspectable", "Introspect"},
    Call{"/", "org.freedesktop.DBus.Peer", "Ping"},
    Call{"/org/freedesktop/LogControl1", "org.freedesktop.DBus.Properties", "Get"}};

// Sends all calls, and signals of the same names, to the well-known and to the unique name of the daemon.
std::string send_all(const char* unique) {
    const auto bus = open_system_bus();
    if (!bus) return bus.error().text;
    for (const char* to : {kBusName, unique}) {
        for (const Call& call : kCalls) {
            sd_bus_message* raw = nullptr;
            ::sd_bus_message_new_method_call(bus->get(), &raw, to, call.path, call.interface, call.member);
            const MessagePtr message(raw);
            ::sd_bus_message_set_expect_reply(raw, 0);
            ::sd_bus_send(bus->get(), raw, nullptr);
            ::sd_bus_message_new_signal(bus->get(), &raw, call.path, call.interface, call.member);
            const MessagePtr signal(raw);
            ::sd_bus_message_set_destination(raw, to);
            ::sd_bus_send(bus->get(), raw, nullptr);
        }
    }
    // When this is answered, the bus has processed all messages before it.
    ::sd_bus_call_method(bus->get(), "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                         "GetId", nullptr, nullptr, "");
    return "sent";
}

class BusPolicy : public testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "needs root to change the user";
        if (!bus_.is_there()) GTEST_SKIP() << "there is no dbus-daemon";
        auto daemon = open_system_bus();
        ASSERT_TRUE(daemon) << daemon.error().text;
        daemon_ = std::move(*daemon);
        ASSERT_GE(::sd_bus_request_name(daemon_.get(), kBusName, 0), 0);
        ::sd_bus_add_filter(daemon_.get(), nullptr, on_message, this);
        ::sd_bus_get_unique_name(daemon_.get(), &unique_);
    }
    static int on_message(sd_bus_message* message, void* self, sd_bus_error* /*error*/) {
        if (::sd_bus_message_is_signal(message, "org.freedesktop.DBus", nullptr) == 0)  // else: from the bus
            static_cast<BusPolicy*>(self)->came_.emplace_back(::sd_bus_message_get_member(message));
        return 1;
    }
    std::vector<std::string> came() {
        while (::sd_bus_process(daemon_.get(), nullptr) > 0) continue;
        return std::exchange(came_, {});
    }

    const char* unique_ = nullptr;

  private:
    test::PrivateBus bus_;
    BusPtr daemon_;
    std::vector<std::string> came_;
};

TEST_F(BusPolicy, LetsRootThroughAndNobodyElse) {
    ASSERT_EQ(test::as_nobody([&] { return send_all(unique_); }), "sent");
    EXPECT_THAT(came(), testing::IsEmpty());
    ASSERT_EQ(send_all(unique_), "sent");
    EXPECT_EQ(came().size(), 4 * kCalls.size());
}

TEST_F(BusPolicy, WhoIsRefusedIsToldToBeRoot) {
    EXPECT_EQ(
        test::as_nobody([] {
            const auto bus = open_system_bus();
            return bus ? call_daemon(bus->get(), "Pin", {"kcryptd", "smt"}).error().text : bus.error().text;
        }),
        "only root may give orders: run it as root (sudo)");
}

// The child answers each order with what it got; "Compare" fails.
TEST(BusOrders, ComeWithTheirArgumentsAndAreAnswered) {
    const test::PrivateBus private_bus;
    if (!private_bus.is_there() || ::geteuid() != 0) GTEST_SKIP() << "needs root and a dbus-daemon";
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        Journal journal;
        sd_event* event = nullptr;
        ::sd_event_default(&event);
        std::string got;
        BusServer server(event, journal,
                         [&](const auto& method, const auto& arguments) -> Result<std::string> {
                             got += method;
                             for (const std::string& argument : arguments) got += " " + argument;
                             if (method == "Compare") return fail("not " + arguments.at(1));
                             return method == "Revert" ? std::exchange(got, "") : got += ";";
                         });
        server.connect();
        server.wait();
        ::_exit(::sd_event_loop(event));
    }
    const auto bus = open_system_bus();
    ASSERT_TRUE(bus) << bus.error().text;
    const auto order = [&](const char* method, const std::vector<std::string>& arguments) {
        const auto done = call_daemon(bus->get(), method, arguments);
        return done ? *done : done.error().text;
    };
    for (int i = 0; i < 1000 && !order("Reload", {}).empty(); i++) ::usleep(10'000);
    for (const char* method : {"Pause", "Resume"}) EXPECT_EQ(order(method, {}), "");
    EXPECT_EQ(order("Pin", {"kcryptd", "smt"}), "");
    EXPECT_EQ(order("Unpin", {"a b"}), "");
    EXPECT_EQ(order("Compare", {"kcryptd", "cpu"}), "not cpu");
    EXPECT_THAT(order("Pin", {"kcryptd"}), testing::HasSubstr("Invalid arguments"));
    EXPECT_EQ(order("Revert", {""}),
              "Reload;Pause;Resume;Pin kcryptd smt;Unpin a b;Compare kcryptd cpuRevert ");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace wq
