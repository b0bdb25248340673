// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ctl/lab/rounds.h"
#include "ctl/lab/runner.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/topology.h"
#include "machine/workqueue.h"
#include "owned/owned.h"
#include "owned/writer.h"
#include "targets/step.h"

namespace wq::lab {

// Parses "cache,smt,smt:strict": at least two arms, each once. If one is strict, the arms without ":strict"
// are not strict; else no arm changes strictness. Errors: EINVAL.
Result<std::vector<Arm>> parse_arms(std::string_view text);
// An arm of commands for /bin/sh. An empty command does nothing.
struct CommandArm {
    std::string name, apply, undo;
};

// What is compared.
struct Subject {
    std::string name;                 // "" if it has none
    std::vector<Row> rows;            // one per arm, the reference first
    std::optional<Owned> owned = {};  // the files that the arms write, before the first write
    std::vector<Values> values = {};  // that they hold; index: arm
    // If not empty: the file ignores a write of the value that it has, so another of these is written in
    // between; the best first.
    std::vector<std::string> vias = {};
    std::vector<CommandArm> commands = {};  // or what is run; index: arm
};

struct ScopesOf {
    const Topology& topology;
    const KernelInfo& kernel;
};
// ARMS, as they are parsed, of TARGET. If empty: the scope in place, then one scope of each other partition,
// coarsest first; or, if ALL, all scopes of the kernel. The plan is by the CPUs alone, without the policy,
// which is for the daemon. Errors: TARGET must not be written, or may hold a setting that wq-tuned left; the
// kernel lacks a scope; nothing to compare.
Result<Subject> scope_arms(const Paths& paths, const ScopesOf& machine, Workqueue target,
                           std::vector<Arm> arms, bool all = false);

// Puts the arms of a subject in place. What undoes a write or a command is on disk before it.
// The undo of a command runs before the next arm.
class ArmSwitcher {
  public:
    // STORE must have nothing of SUBJECT, which must outlive this.
    ArmSwitcher(WorkqueueFiles& files, OwnedStore& store, const Processes& processes, const Subject& subject)
        : store_(store), writer_(files, store), processes_(processes), subject_(subject) {}

    // Of a value, writes the current one first, to check that it can be restored, then each value once.
    Status begin();
    // Errors: an external writer changed a file (it stays as found); the kernel stored another value; a
    // command failed, whose undo is still on disk.
    Status to(std::size_t arm);
    Status check();  // for an external writer

  private:
    Status foreign(Knob file, const std::string& text);
    Status write(const Values& values);
    Status run_command(const CommandArm& arm);

    OwnedStore& store_;
    OwnedWriter writer_;
    const Processes& processes_;
    const Subject& subject_;
    Values in_place_;      // what the files showed after our last write
    std::string to_undo_;  // the entry of a command; "" if there is none
};

}  // namespace wq::lab
