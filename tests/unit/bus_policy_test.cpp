// SPDX-License-Identifier: LGPL-2.1-or-later
// conf/org.wqtuned1.conf: which messages the bus lets callers other than root send to the daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "as_nobody.h"
#include "private_bus.h"
#include "service/bus.h"

namespace wq {
namespace {

constexpr const char* kLogPath = "/org/freedesktop/LogControl1";
constexpr const char* kProperties = "org.freedesktop.DBus.Properties";

struct Call {
    const char* path;
    const char* interface;
    const char* member;
};
constexpr std::array kAllowed = {Call{kBusPath, kBusInterface, "GetStatus"},
                                 Call{kBusPath, kBusInterface, "Pin"},
                                 Call{kBusPath, kBusInterface, "Unpin"},
                                 Call{kBusPath, kBusInterface, "Revert"},
                                 Call{kBusPath, kBusInterface, "Trial"},
                                 Call{kBusPath, kBusInterface, "Pause"},
                                 Call{kBusPath, kBusInterface, "Resume"},
                                 Call{kBusPath, kBusInterface, "Reload"},
                                 Call{"/", "org.freedesktop.DBus.Introspectable", "Introspect"},
                                 Call{"/", "org.freedesktop.DBus.Peer", "Ping"},
                                 Call{kLogPath, kProperties, "Get"},
                                 Call{kLogPath, kProperties, "GetAll"}};
constexpr std::array kDenied = {
    Call{"/org", kBusInterface, "GetStatus"}, Call{kBusPath, kBusInterface, "Subscribe"},
    Call{kBusPath, "org.example.Other", "GetStatus"}, Call{kLogPath, kProperties, "Set"},
    Call{"/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects"}};

std::string text_of(const Call& call) {
    return std::string(call.path) + " " + call.interface + "." + call.member;
}

void send(sd_bus* bus, const Call& call, const char* to) {
    sd_bus_message* raw = nullptr;
    ::sd_bus_message_new_method_call(bus, &raw, to, call.path, call.interface, call.member);
    const MessagePtr message(raw);
    ::sd_bus_message_set_expect_reply(raw, 0);
    ::sd_bus_send(bus, raw, nullptr);
}

void send_signal(sd_bus* bus, const Call& call, const char* to) {
    sd_bus_message* raw = nullptr;
    ::sd_bus_message_new_signal(bus, &raw, call.path, call.interface, call.member);
    const MessagePtr message(raw);
    ::sd_bus_message_set_destination(raw, to);
    ::sd_bus_send(bus, raw, nullptr);
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
    }
    // Sends all CALLS as user nobody, as method calls and as signals, to the well-known and to the unique
    // name of the daemon.
    template <class Calls>
    void send_all(const Calls& calls) {
        const char* unique = nullptr;
        ::sd_bus_get_unique_name(daemon_.get(), &unique);
        EXPECT_EQ(test::as_nobody([&] {
                      const auto bus = open_system_bus();
                      if (!bus) return bus.error().text;
                      for (const char* to : {kBusName, unique}) {
                          for (const Call& call : calls) {
                              send(bus->get(), call, to);
                              send_signal(bus->get(), call, to);
                          }
                      }
                      // When this call is answered, the bus has processed all messages before it.
                      ::sd_bus_call_method(bus->get(), "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                           "org.freedesktop.DBus", "GetId", nullptr, nullptr, "");
                      return std::string("sent");
                  }),
                  "sent");
        while (::sd_bus_process(daemon_.get(), nullptr) > 0) continue;
    }
    static int on_message(sd_bus_message* message, void* self, sd_bus_error* /*error*/) {
        std::uint8_t type = 0;
        ::sd_bus_message_get_type(message, &type);
        const Call call{::sd_bus_message_get_path(message), ::sd_bus_message_get_interface(message),
                        ::sd_bus_message_get_member(message)};
        if (::sd_bus_message_is_signal(message, "org.freedesktop.DBus", nullptr) > 0)
            return 0;  // sent by the bus itself
        static_cast<BusPolicy*>(self)->came.push_back((type == SD_BUS_MESSAGE_METHOD_CALL ? "" : "signal ") +
                                                      text_of(call));
        return 1;
    }

    std::vector<std::string> came;

  private:
    test::PrivateBus bus_;
    BusPtr daemon_;
};

TEST_F(BusPolicy, LetsTheDaemonsCallsThroughAndNoSignals) {
    send_all(kAllowed);
    std::vector<std::string> twice;
    for (int i = 0; i < 2; i++)
        for (const Call& call : kAllowed) twice.push_back(text_of(call));
    EXPECT_EQ(came, twice);
}

TEST_F(BusPolicy, LetsNothingElseThrough) {
    send_all(kDenied);
    EXPECT_THAT(came, testing::IsEmpty());
}

}  // namespace
}  // namespace wq
