// SPDX-License-Identifier: LGPL-2.1-or-later
#include "private_bus.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace wq::test {
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

}  // namespace

PrivateBus::PrivateBus() {
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
    const bool listens = ::read(ready[0], address, sizeof address) > 0;  // prints its address once it listens
    ::close(ready[0]);
    if (!listens) ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    name_the_bus(socket);
}

PrivateBus::~PrivateBus() {
    ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
}

SilentBus::SilentBus() {
    const std::string socket = tree_.path("socket");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy_n(socket.data(), std::min(socket.size(), sizeof address.sun_path - 1), address.sun_path);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd_, 16) != 0)
        throw std::runtime_error("no socket at " + socket);
    name_the_bus(socket);
}

SilentBus::~SilentBus() {
    ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
    ::close(fd_);
}

}  // namespace wq::test
