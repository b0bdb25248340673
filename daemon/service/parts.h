// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/journal.h"
#include "bpf/work_counters.h"
#include "evidence/verdicts.h"
#include "experiment/experiment.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/udev.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"
#include "policy/policy.h"
#include "state/state_file.h"
#include "targets/engine.h"

namespace wq {

// What looks, decides and writes, connected: the daemon without its loop, its bus and its files for others.
struct Parts {
    Parts(const Paths& paths, Log& log, RecordWriter& record, const OptedOut& opted_out);
    Parts(const Parts&) = delete;  // the parts have references to each other
    Parts& operator=(const Parts&) = delete;

    void use(Policy policy);
    void changed(Udev::Change change);
    // Looks at all targets and writes what follows.
    void look() { engine.reconcile(); }
    [[nodiscard]] bool wants_retry() const { return engine.wants_retry(); }

    WorkqueueFs files;
    OwnedStore owned;
    VerdictStore verdicts;
    LedgerFile ledger;
    OrderBook book;
    const std::string baseline_error;  // "" if owned.json could be read
    std::unique_ptr<WorkCounters> counters;
    Engine engine;
    Experiment experiment;

  private:
    std::string load(Log& log);
};

// `wq-tunectl pause` and `resume`. Experiments are paused while a file exists. RECORD writes it, because its
// disk may not answer: the order takes effect at once, and an error of the file is logged later.
class Pause {
  public:
    Pause(std::string path, RecordWriter& record, Log& log)
        : path_(std::move(path)), record_(record), log_(log) {}

    // A file that cannot be examined counts as absent; the error is logged.
    void load();
    void set(bool paused);
    [[nodiscard]] bool is_set() const { return paused_; }

  private:
    std::string path_;
    RecordWriter& record_;
    Log& log_;
    bool paused_ = false;
};

// Locks the process in memory while experiments need it. If that fails, restoring may need pages from a disk
// that does not answer: a risk, but no reason to stop. A new reason is logged.
class HeldMemory {
  public:
    explicit HeldMemory(Log& log) : log_(log) {}
    void hold(bool hold);

  private:
    Log& log_;
    bool held_ = false;
    std::string why_not_;  // last logged
};

}  // namespace wq
