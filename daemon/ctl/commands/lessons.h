// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evidence/verdicts.h"
#include "targets/step.h"

namespace wq {

// The conclusion from the verdicts on one class of workqueues.
struct Lesson {
    enum class Kind {
        nothing,  // no conclusion; `why` says why
        leave,    // the candidates are worse than the kernel's setting
        use,      // `arm` is better than the kernel's setting
    };
    Kind kind = Kind::nothing;
    std::string name;  // the target of the latest decided verdict or, without one, of the latest verdict
    Arm arm;           // for `use`
    // The evidence: for `use`, the steps in their order; for `leave`, the verdicts that regressed, oldest
    // first; for `nothing`, the verdict that `why` is about.
    std::vector<VerdictRecord> verdicts;
    std::string why;  // for `nothing`: "is undecided"
    // Verdicts on the arms of one of `verdicts` that say the opposite, oldest first.
    std::vector<VerdictRecord> opposed = {};
};

struct LessonInput {
    const std::vector<VerdictRecord>& records;  // VerdictStore::records()
    std::string kernel;                         // only verdicts of this kernel_key() count,
    std::string topology;                       // and of this fingerprint()
    std::int64_t now = 0;                       // s since 1970
};

// Returns a lesson for each class with a verdict of this kernel and topology, sorted by class. It has no side
// effects. It depends neither on the policy nor on the workqueues that exist now.
std::vector<Lesson> lessons_of(const LessonInput& input);

}  // namespace wq
