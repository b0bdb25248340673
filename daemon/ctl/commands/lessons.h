// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/step.h"
#include "judge/verdicts.h"

namespace wq {

// What the verdicts on one class of workqueues come to.
struct Lesson {
    enum class Kind {
        nothing,  // `why`
        leave,    // what was tried is worse than what the kernel had
        use,      // `arm` is better
    };
    Kind kind = Kind::nothing;
    std::string name;  // the workqueue of the class that was tried last, or @default
    Arm arm;           // of `use`: strict is false where the kernel's setting is strict and this one is not
    std::vector<VerdictRecord> verdicts;  // that it rests on, oldest first; of `nothing`, the last one
    std::string why;                      // of `nothing`, to people, of the last verdict: "is undecided"
    // Earlier ones on the arms of one of `verdicts` that say the opposite, oldest first.
    std::vector<VerdictRecord> opposed = {};
};

struct LessonInput {
    const std::vector<VerdictRecord>& records;  // VerdictStore::records()
    std::string kernel;                         // only what was learned on this release,
    std::string topology;                       // and on this fingerprint()
    std::int64_t now = 0;                       // s since 1970
};

// A lesson for each class with a verdict of this kernel and topology, by class. Pure; neither the policy nor
// the workqueues that there are now have a part in it.
std::vector<Lesson> lessons_of(const LessonInput& input);

}  // namespace wq
