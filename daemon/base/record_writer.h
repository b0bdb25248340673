// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace wq {

// Writes what is kept for the record: verdicts, readings, metrics. Their disk may answer late, or not at all
// (it may be the very device whose workqueue is on trial), so the daemon never waits for it.
// What must be on disk before a write to /sys, the baseline, is in /run and does not go through here.
class RecordWriter {
  public:
    using Work = std::function<Status()>;
    using Done = std::function<void(const Status&)>;

    virtual ~RecordWriter() = default;

    // Has WORK done, and then DONE called with what came of it. NAME says what WORK is about, as a rule the
    // path of a file. Work is done in the order in which names were first put, one at a time; work that still
    // waits is replaced by newer work of the same name, and DONE of both is called with the result of the
    // newer one.
    //
    // WORK may run in another thread: it holds all that it needs by value. DONE is called by the thread that
    // called put(), possibly before put() returns; what it refers to outlives the writer's last call.
    virtual void put(const std::string& name, Work work, Done done) = 0;
};

// Does the work before put() returns: for tools and tests, which have nothing to keep waiting.
class WriteAtOnce : public RecordWriter {
  public:
    void put(const std::string& /*name*/, Work work, Done done) override { done(work()); }
};

}  // namespace wq
