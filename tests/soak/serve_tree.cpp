// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs the daemon on a tree of its own, for storms that no machine has. Prints the path of the tree in one
// line. Each byte of its input is an event of udev: w (workqueue), c (CPU), l (events were lost). Logs to
// stderr; ends at SIGTERM and removes the tree.
#include <sys/epoll.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <iostream>

#include "../unit/fake_machine.h"
#include "service/service.h"

namespace {

using wq::Udev;
using OnChange = std::function<void(Udev::Change)>;

int on_bytes(sd_event_source* source, int fd, unsigned /*events*/, void* userdata) {
    char bytes[4096];
    const ssize_t n = ::read(fd, bytes, sizeof(bytes));
    if (n <= 0) return ::sd_event_source_set_enabled(source, SD_EVENT_OFF);
    const auto& on_change = *static_cast<OnChange*>(userdata);
    for (ssize_t i = 0; i < n; i++)
        on_change(bytes[i] == 'c'   ? Udev::Change::cpu
                  : bytes[i] == 'l' ? Udev::Change::lost
                                    : Udev::Change::workqueue);
    return 0;
}

}  // namespace

int main() {
    using namespace wq::test;
    for (const int signal : {SIGTERM, SIGHUP}) {  // signals sent before it listens stay pending
        sigset_t mask;
        ::sigemptyset(&mask);
        ::sigaddset(&mask, signal);
        ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    }
    TempTree tree(kernel_tree({workqueue("writeback"), workqueue("nvme-wq")}));
    tree.add(cpu_tree({.cores = 4, .threads = 2}));
    tree.add(Dir("srv"));
    tree.add(Dir("staging"));
    tree.write("etc/wq-tuned/wq-tuned.toml",
               "[metrics]\ntextfile = \"/srv/wq.prom\"\n"
               "[[workqueue]]\nmatch = \"*\"\nscope = \"smt\"\n");
    std::cout << tree.root() << std::endl;
    OnChange told;
    wq::ServiceOptions options{tree.root(), std::nullopt};
    options.events = [&told](sd_event* event, OnChange on_change) {
        told = std::move(on_change);
        ::sd_event_add_io(event, nullptr, STDIN_FILENO, EPOLLIN, on_bytes, &told);
    };
    const auto done = wq::Service(options).run();
    if (!done) std::cerr << done.error().text << '\n';
    return done ? 0 : 1;
}
