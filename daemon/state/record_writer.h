// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace wq {

// Writes records: verdicts, readings, metrics. Their disk may answer late or never (it may be the device
// whose workqueue is compared), so the daemon never waits for it. The baseline must be stored before a write
// to /sys; it is in /run and does not use this class.
class RecordWriter {
  public:
    using Work = std::function<Status()>;
    using Done = std::function<void(const Status&)>;

    virtual ~RecordWriter() = default;

    // Runs WORK, then calls DONE with its result. NAME identifies the record, usually the path of a file.
    // Jobs run one at a time, in the order in which their names were first put. A newer job replaces a
    // waiting job of the same name; DONE of both is then called with the result of the newer one.
    //
    // WORK may run in another thread, so it must hold all its data by value. DONE is called by the thread
    // that called put(), possibly before put() returns. Objects that DONE refers to must outlive that call.
    virtual void put(const std::string& name, Work work, Done done) = 0;
};

// Runs the work before put() returns. For tools and tests, which may block.
class WriteAtOnce : public RecordWriter {
  public:
    void put(const std::string& /*name*/, Work work, Done done) override { done(work()); }
};

}  // namespace wq
