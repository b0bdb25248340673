// SPDX-License-Identifier: LGPL-2.1-or-later
// Orders: each is one call to the daemon.
#include <cerrno>

#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "service/bus.h"

namespace wq::ctl {

int order(const Options& options, const char* method, const std::vector<std::string>& arguments) {
    const auto done = [&]() -> Result<std::string> {
        if (!options.root.empty()) return fail("--root names a tree, which has no daemon", ESRCH);
        const auto bus = open_system_bus();
        if (!bus) return fail("the daemon cannot be reached: " + bus.error().text, ESRCH);
        return call_daemon(bus->get(), method, arguments);
    }();
    if (done && !done->empty()) say(*done + "\n");
    if (done) return kOk;
    complain(done.error().text);
    return done.error().code == ESRCH ? kNoDaemon : kFailure;
}

}  // namespace wq::ctl
