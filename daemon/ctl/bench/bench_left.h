// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/journal.h"
#include "ctl/bench/bench_devices.h"
#include "kernel/paths.h"

namespace wq::bench {

// What a benchmark has to remove. What its workqueue held is in baseline.json, as for `ab`.
struct Left {
    std::string name;     // of its devices, whether they are there yet or not
    bool driver = false;  // it loads the driver, and so unloads it
};

// /run/wq-tuned/bench.json: what the benchmark that holds the lock, or the last one, has to remove. On disk
// before the first device is made, until the last is removed.
class LeftStore {
  public:
    explicit LeftStore(const Paths& paths) : path_(paths.run() + "/bench.json") {}

    // Empty if there is nothing. Errors: unreadable, or not ours (EBADMSG).
    [[nodiscard]] Result<std::optional<Left>> load() const;
    [[nodiscard]] Status save(const Left& left) const;
    [[nodiscard]] Status clear() const;

  private:
    std::string path_;
};

// A name for devices that no other has: "wq-bench-0123456789abcdef".
std::string new_name();

// Puts scopes back as `ab` does, and removes what bench.json names, then the file. What could not be put back
// or removed is logged and stays on disk. Returns whether nothing is left.
bool remove_left(const Paths& paths, Devices& devices, Log& log);

}  // namespace wq::bench
