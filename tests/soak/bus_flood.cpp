// SPDX-License-Identifier: LGPL-2.1-or-later
// bus-flood calls SECONDS BYTES|unread
//     makes calls that want no reply, or whose replies are not read (flood.h); prints how many
// bus-flood orders SECONDS TARGET ONE OTHER
//     pins TARGET to two scopes in turn, each time over a new connection; prints the number of orders, the
//     time of the longest, and how many failed
// bus-flood silent PATH
//     a socket that takes connections and never answers, until a signal
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "flood.h"
#include "service/bus.h"

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

int calls(const Words& words) {
    const bool unread = words[2] == "unread";
    const auto sent = wq::test::flood(std::stoul(words[1]) * 1'000'000,
                                      {.junk = unread ? 0 : std::stoul(words[2]), .unread = unread});
    std::cout << nlohmann::json{{"sent", sent}} << std::endl;
    return sent > 0 ? 0 : 1;
}

wq::Status order(const std::string& target, const std::string& scope) {
    const auto bus = wq::open_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    const auto done = wq::call_daemon(bus->get(), "Pin", {target, scope});
    if (!done) return tl::unexpected(done.error());
    return {};
}

int orders(const Words& words) {
    Clock::duration longest{};
    unsigned given = 0;
    unsigned failed = 0;
    for (const auto end = Clock::now() + std::chrono::seconds(std::stoul(words[1])); Clock::now() < end;
         given++) {
        const auto begin = Clock::now();
        const auto done = order(words[2], words[3 + given % 2]);
        longest = std::max(longest, Clock::now() - begin);
        if (!done) std::cerr << done.error().text << std::endl;
        failed += done ? 0 : 1;
        ::usleep(250'000);
    }
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(longest).count();
    std::cout << nlohmann::json{{"orders", given}, {"longest_ms", ms}, {"failed", failed}} << std::endl;
    return 0;
}

int silent(const Words& words) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy_n(words[1].data(), std::min(words[1].size(), sizeof address.sun_path - 1), address.sun_path);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, 16) != 0)
        return 1;
    return ::pause();
}

}  // namespace

int main(int argc, char** argv) {
    const Words words(argv + 1, argv + argc);
    if (words.size() == 3 && words[0] == "calls") return calls(words);
    if (words.size() == 5 && words[0] == "orders") return orders(words);
    if (words.size() == 2 && words[0] == "silent") return silent(words);
    return 2;
}
