// SPDX-License-Identifier: LGPL-2.1-or-later
// pin, unpin, revert, pause, resume, reload: each is one call to the daemon.
#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>

#include "ctl/commands/order.h"
#include "ctl/commands/password_agent.h"
#include "ctl/machine.h"
#include "service/bus.h"

namespace wq::ctl {
namespace {

int order(const Options& options, const char* method, const std::vector<std::string>& arguments) {
    if (!options.root.empty()) {
        complain("a tree has no daemon to give orders to");
        return kNoDaemon;
    }
    const auto bus = open_system_bus();
    if (!bus) {
        complain("a daemon cannot be asked: " + bus.error().text);
        return kNoDaemon;
    }
    const auto answer = order_daemon(bus->get(), method, arguments);
    if (answer) return kOk;
    complain(answer.error().text);
    return answer.error().code == ESRCH ? kNoDaemon : kFailure;
}

}  // namespace

Status order_daemon(sd_bus* bus, const char* method, const std::vector<std::string>& arguments) {
    const PasswordAgent agent;
    const auto answer = call_daemon(bus, method, arguments, ::geteuid() != 0);
    if (!answer) return tl::unexpected(answer.error());
    return {};
}

int pin(const Options& options, const std::string& target, const std::string& scope) {
    return order(options, "Pin", {target, scope});
}

int unpin(const Options& options, const std::string& target) {
    return order(options, "Unpin", {target});
}

int revert(const Options& options, const std::optional<std::string>& target) {
    return order(options, "Revert", {target.value_or("")});
}

int pause(const Options& options) {
    return order(options, "Pause", {});
}

int resume(const Options& options) {
    return order(options, "Resume", {});
}

int reload(const Options& options) {
    return order(options, "Reload", {});
}

}  // namespace wq::ctl
