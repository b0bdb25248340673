// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ctl/commands/lessons.h"
#include "machine/host_facts.h"

namespace wq::ctl {

struct ExportInput {
    HostFacts facts;              // of the machine that learned
    std::string topology;         // its fingerprint()
    std::vector<Lesson> lessons;  // lessons_of() its verdicts
    std::int64_t now = 0;         // s since 1970
};

// Returns the lessons as one policy drop-in: a host table for machines of this kind with a kernel of this
// series, and a rule for each class of workqueues, with narrower patterns first. A fact that is not known of
// the machine becomes a comment, not a condition. The text contains neither the host name nor the machine id.
// Returns "" if no lesson makes a rule.
std::string exported_policy(const ExportInput& input);

}  // namespace wq::ctl
