// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/journal.h"
#include "ctl/lab/bench_devices.h"
#include "machine/paths.h"

namespace wq::bench {

// What a benchmark must remove. The original setting of its workqueue is in baseline.json, as for `ab`.
struct Left {
    std::string name;     // of its devices, which may not exist yet
    bool driver = false;  // the benchmark loads the driver, so it unloads it
};

// /run/wq-tuned/bench.json: what the benchmark that holds the lock, or the last one, must remove. The file
// exists from before the first device is made until the last one is removed.
class LeftStore {
  public:
    explicit LeftStore(const Paths& paths) : path_(paths.run() + "/bench.json") {}

    // Empty if there is nothing to remove. Errors: the file cannot be read, or is not ours (EBADMSG).
    [[nodiscard]] Result<std::optional<Left>> load() const;
    [[nodiscard]] Status save(const Left& left) const;
    [[nodiscard]] Status clear() const;

  private:
    std::string path_;
};

// Returns a new random name for devices: "wq-bench-0123456789abcdef".
std::string new_name();

// Restores scopes like `ab`, then removes the devices that bench.json names, then the file. Logs and keeps on
// disk what could not be restored or removed. Returns whether nothing is left.
bool remove_left(const Paths& paths, Devices& devices, Log& log);

}  // namespace wq::bench
