// SPDX-License-Identifier: LGPL-2.1-or-later
// conf/org.wqtuned1.conf: the bus delivers to the daemon only what root sends.
#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "as_nobody.h"
#include "service/bus.h"
#include "temp_tree.h"

namespace wq {
namespace {

// The policy of Debian's /usr/share/dbus-1/system.conf.
std::string configuration(const std::string& socket) {
    return R"(<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
  "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <auth>EXTERNAL</auth>
  <listen>unix:path=)" +
           socket + R"(</listen>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
  </policy>
  <include>)" SOURCE_DIR R"(/conf/org.wqtuned1.conf</include>
</busconfig>
)";
}

void name_the_bus(const std::string& socket) {
    ::setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + socket).c_str(), 1);
}

// A dbus-daemon with the policy of Debian's system bus and conf/org.wqtuned1.conf. While the object lives,
// DBUS_SYSTEM_BUS_ADDRESS names it. If dbus-daemon does not start, is_there() is false.
class PrivateBus {
  public:
    PrivateBus() {
        const std::string socket = tree_.path("socket");
        tree_.write("bus.conf", configuration(socket));
        tree_.mode("", 0755);
        int ready[2];
        if (::pipe(ready) != 0) throw std::runtime_error("no pipe");
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(ready[0]);
            ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
            const std::string file = "--config-file=" + tree_.path("bus.conf");
            const std::string print = "--print-address=" + std::to_string(ready[1]);
            ::execlp("dbus-daemon", "dbus-daemon", file.c_str(), "--nofork", "--nopidfile", print.c_str(),
                     nullptr);
            ::_exit(127);
        }
        ::close(ready[1]);
        char address[512];
        const bool listens =
            ::read(ready[0], address, sizeof address) > 0;  // prints its address once it listens
        ::close(ready[0]);
        if (!listens) ::waitpid(std::exchange(pid_, -1), nullptr, 0);
        name_the_bus(socket);
    }
    ~PrivateBus() {
        ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
        if (pid_ <= 0) return;
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }
    PrivateBus(const PrivateBus&) = delete;
    PrivateBus& operator=(const PrivateBus&) = delete;
    [[nodiscard]] bool is_there() const { return pid_ > 0; }

  private:
    test::TempTree tree_;
    pid_t pid_ = -1;
};

// A socket that takes connections and never answers. While it lives, DBUS_SYSTEM_BUS_ADDRESS names it.
class SilentBus {
  public:
    SilentBus() {
        const std::string socket = tree_.path("socket");
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::copy_n(socket.data(), std::min(socket.size(), sizeof address.sun_path - 1), address.sun_path);
        fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd_, 16) != 0)
            throw std::runtime_error("no socket at " + socket);
        name_the_bus(socket);
    }
    ~SilentBus() {
        ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
        ::close(fd_);
    }
    SilentBus(const SilentBus&) = delete;
    SilentBus& operator=(const SilentBus&) = delete;

  private:
    test::TempTree tree_;
    int fd_ = -1;
};

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
    PrivateBus bus_;
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

TEST(BusServerTest, CarriesOutOrdersAndItsNameGoesWithIt) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may own the name";
    const PrivateBus there;
    if (!there.is_there()) GTEST_SKIP() << "there is no dbus-daemon";
    const pid_t child = ::fork();
    if (child == 0) {
        Journal journal;
        sd_event* event = nullptr;
        ::sd_event_default(&event);
        BusServer server(event, journal,
                         [](const auto& method, const auto& arguments) -> Result<std::string> {
                             if (method == "Revert") return "not " + arguments.at(0);
                             return fail("no " + method, EPERM);
                         });
        server.connect();
        ::sd_event_loop(event);
        ::_exit(0);
    }
    const auto bus = open_system_bus();
    ASSERT_TRUE(bus);
    auto note = call_daemon(bus->get(), "Revert", {"kcryptd"});
    for (int i = 0; i < 500 && !note && note.error().code == ESRCH; i++) {
        ::usleep(10'000);
        note = call_daemon(bus->get(), "Revert", {"kcryptd"});
    }
    EXPECT_EQ(note.value_or("nothing"), "not kcryptd");
    EXPECT_EQ(call_daemon(bus->get(), "Pause", {}).error().text, "no Pause");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (int i = 0; i < 500 && call_daemon(bus->get(), "Pause", {}).error().code != ESRCH; i++)
        ::usleep(10'000);
    EXPECT_EQ(call_daemon(bus->get(), "Pause", {}).error().code, ESRCH);
}

// ---- a bus that accepts connections and never answers: no caller waits for it longer than its timeout

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

TEST(BusSilent, IsNotOpenedAndDoesNotKeepTheDaemonFromStartingWorkingAndStopping) {
    const SilentBus there;
    EXPECT_TRUE(in_time(10, [] {
        const auto bus = open_system_bus();
        return !bus && bus.error().code == ETIMEDOUT;
    }));
    EXPECT_TRUE(in_time(10, [] {
        Journal journal;
        sd_event* event = nullptr;
        ::sd_event_default(&event);
        BusServer server(event, journal, {});
        server.connect();
        ::sd_event_add_time_relative(event, nullptr, CLOCK_MONOTONIC, 100'000, 0, nullptr, nullptr);
        ::sd_event_loop(event);
        return !server.is_restarting() && server.system_state().empty();
    }));
}

}  // namespace
}  // namespace wq
