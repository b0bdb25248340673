// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sysexits.h>
#include <syslog.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <string>

#include "base/journal.h"
#include "base/version.h"
#include "bpf/bpf_dump.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "service/service.h"

int main(int argc, char** argv) {
    wq::ServiceOptions options;
    bool pods = false;
    CLI::App app(
        "Sets the affinity scopes of the kernel's unbound workqueues, and reverts changes that do not help.");
    app.set_version_flag("--version", "wq-tuned " + std::string(wq::version()));
    app.add_flag("--pods", pods,
                 "Read the kernel's pods, leave them in /run/wq-tuned for the daemon, then exit");
    app.add_option("--config", options.config, "Policy file instead of the installed ones");
    app.add_option("--root", options.root,
                   "Use DIR as the root of the file system, for tests; without udev and D-Bus")
        ->check(CLI::ExistingDirectory);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    const auto done = pods ? wq::leave_pods(wq::pods_path(wq::Paths{options.root}), wq::read_kernel_pods())
                           : wq::Service(options).run();
    if (done) return 0;
    wq::Journal().write(
        {LOG_ERR, wq::Event::none, done.error().text, {{"ERRNO", std::to_string(done.error().code)}}});
    // EWOULDBLOCK: another process has the lock. See RestartPreventExitStatus= in the unit.
    return !pods && done.error().code == EWOULDBLOCK ? EX_TEMPFAIL : 1;
}
