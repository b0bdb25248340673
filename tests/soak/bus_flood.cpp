// SPDX-License-Identifier: LGPL-2.1-or-later
// bus-flood calls SECONDS
//     sends the daemon calls that want no reply, every second one with 256 KB, as fast as the system bus
//     takes them; prints how many
// bus-flood silent PATH
//     a socket that takes connections and never answers, until a signal
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace {

bool send_call(sd_bus* bus, const std::vector<unsigned char>& argument) {
    sd_bus_message* message = nullptr;
    int r = ::sd_bus_message_new_method_call(bus, &message, "org.wqtuned1", "/org/wqtuned1",
                                             "org.wqtuned1.Manager", "Reload");
    if (r >= 0) r = ::sd_bus_message_set_expect_reply(message, 0);
    if (r >= 0 && !argument.empty())
        r = ::sd_bus_message_append_array(message, 'y', argument.data(), argument.size());
    if (r >= 0) r = ::sd_bus_send(bus, message, nullptr);
    ::sd_bus_message_unref(message);
    return r >= 0;
}

int calls(unsigned long seconds) {
    using Clock = std::chrono::steady_clock;
    constexpr unsigned kAtOnce = 64;  // calls, then it waits until the bus has taken them
    sd_bus* bus = nullptr;
    if (::sd_bus_open_system(&bus) < 0) return 1;
    const std::vector<unsigned char> argument(256 * 1024, 'x');
    unsigned long sent = 0;
    for (const auto end = Clock::now() + std::chrono::seconds(seconds); Clock::now() < end;) {
        if (!send_call(bus, sent % 2 == 1 ? argument : std::vector<unsigned char>())) break;
        if (++sent % kAtOnce == 0 && ::sd_bus_flush(bus) < 0) break;
    }
    ::sd_bus_close_unref(bus);
    std::cout << sent << std::endl;
    return sent > 0 ? 0 : 1;
}

int silent(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy_n(path.data(), std::min(path.size(), sizeof address.sun_path - 1), address.sun_path);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, 16) != 0)
        return 1;
    return ::pause();
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 2 && words[0] == "calls") return calls(std::stoul(words[1]));
    if (words.size() == 2 && words[0] == "silent") return silent(words[1]);
    return 2;
}
