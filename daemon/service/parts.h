// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <string>

#include "base/journal.h"
#include "bpf/work_counters.h"
#include "evidence/verdicts.h"
#include "experiment/experiment.h"
#include "machine/paths.h"
#include "machine/udev.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"
#include "policy/policy.h"
#include "state/state_file.h"
#include "targets/orders.h"
#include "targets/slot_writer.h"

namespace wq {

// What looks, decides and writes, connected: the daemon without its loop, its bus and its files for others.
class Parts {
  public:
    Parts(const Paths& paths, Log& log, RecordWriter& record, const OptedOut& opted_out);
    Parts(const Parts&) = delete;  // the parts have references to each other
    Parts& operator=(const Parts&) = delete;

    void use(Policy policy);
    void changed(Udev::Change change);
    // Call it at ticks, for what sends no event: a suspend, and CPUs where there is no udev.
    void poll();

    // `wq-tunectl pause` and `resume`. Experiments are paused while a file exists. Its disk may not answer:
    // an order takes effect at once, and an error of the file is logged later.
    void pause(bool paused);
    // Locks the process in memory while experiments need it. If that fails, restoring may need pages from a
    // disk that does not answer: a risk, but no reason to stop.
    void hold_memory();

    WorkqueueFs files;
    OwnedStore owned;
    VerdictStore verdicts;
    LedgerFile ledger;
    OrderBook book;
    const std::string baseline_error;  // "" if owned.json could be read
    std::unique_ptr<WorkCounters> counters;
    Targets targets;
    Engine engine;
    Orders orders;
    SlotWriter slot_writer;
    Experiment experiment;

  private:
    std::string load(Log& log);

    const Paths& paths_;
    Log& log_;
    RecordWriter& record_;
    bool holds_memory_ = false;
    bool said_ = false;       // that memory cannot be held
    std::int64_t suspended_;  // ns suspended since boot
    std::string cpus_;        // cpu_state()
};

}  // namespace wq
