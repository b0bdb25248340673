// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine/workqueue.h"

namespace wq::ctl {

// The options of all wq-tunectl commands. Exit codes: 0 ok, 1 failure, 2 usage, 3 daemon not running.
struct Options {
    bool json = false;
    bool boot = false;  // plan: show the recommended kernel command line
    std::string topology = "live";
    std::string save;                                 // topology: also write its tree to this folder
    std::optional<unsigned> shard_size;               // cores
    std::optional<std::vector<Scope>> kernel_scopes;  // plan for a kernel with these scopes
    std::optional<std::string> config;                // policy file to use instead of the installed ones
    std::string root;  // prefix of /sys, /proc, /run and /etc; "" is the machine
};

enum Exit { kOk = 0, kFailure = 1, kUsage = 2, kNoDaemon = 3 };

// One function per command, one file per function. Each prints to stdout, and errors as one line to stderr.
int topology(const Options& options);
int plan(const Options& options, bool experiments);  // EXPERIMENTS: what would be compared
int plan_boot(const Options& options);
int explain(const Options& options, const std::string& target);
int check(const Options& options, const std::vector<std::string>& files);
int cat_config(const Options& options);
int status(const Options& options, const std::string& target = "");  // "": all targets
int undo(const Options& options);
// WITH: the scope to compare; "" is the next candidate.
int compare(const Options& options, const std::string& target, const std::string& with);
int history(const Options& options, const std::string& target);  // "": all targets
// Writes the report to the file OUTPUT; "-" is stdout.
int report(const Options& options, const std::string& output);
// Calls METHOD of the daemon, for pin, unpin, revert, pause, resume and reload.
int order(const Options& options, const char* method, const std::vector<std::string>& arguments = {});

}  // namespace wq::ctl
