// SPDX-License-Identifier: LGPL-2.1-or-later
// Orders: each is one call to the daemon.
#include <unistd.h>

#include <cerrno>

#include "ctl/commands/order.h"
#include "ctl/commands/password_agent.h"
#include "ctl/machine.h"
#include "service/bus.h"

namespace wq::ctl {

Status order_daemon(sd_bus* bus, const char* method, const std::vector<std::string>& arguments) {
    const PasswordAgent agent;
    const auto answer = call_daemon(bus, method, arguments, ::geteuid() != 0);
    if (!answer) return tl::unexpected(answer.error());
    return {};
}

int order(const Options& options, const char* method, const std::vector<std::string>& arguments) {
    if (!options.root.empty()) {
        complain("--root names a tree, which has no daemon");
        return kNoDaemon;
    }
    const auto bus = open_system_bus();
    if (!bus) {
        complain("the daemon cannot be reached: " + bus.error().text);
        return kNoDaemon;
    }
    const auto answer = order_daemon(bus->get(), method, arguments);
    if (answer) return kOk;
    complain(answer.error().text);
    return answer.error().code == ESRCH ? kNoDaemon : kFailure;
}

}  // namespace wq::ctl
