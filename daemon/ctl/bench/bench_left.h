// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/journal.h"
#include "ctl/bench/bench_devices.h"

namespace wq::bench {

// What a benchmark has to remove.
struct Left {
    std::string name;     // of its devices, whether they are there yet or not
    bool driver = false;  // it loads the driver, and so unloads it
};

// /run/wq-tuned/bench.json: what the benchmark that holds the lock, or the last one, has to remove. On disk
// before the first device is made.
class LeftStore {
  public:
    explicit LeftStore(std::string path) : path_(std::move(path)) {}

    // Empty if there is nothing. Errors: unreadable, or not ours (EBADMSG).
    [[nodiscard]] Result<std::optional<Left>> load() const;
    [[nodiscard]] Status save(const Left& left) const;
    [[nodiscard]] Status clear() const;

  private:
    std::string path_;
};

// A name for devices that no other has: "wq-bench-0123456789abcdef".
std::string new_name();

// Removes what STORE has, and clears it. What could not be removed is logged and stays in STORE. Returns
// whether nothing is left.
bool remove_left(Devices& devices, const LeftStore& store, Log& log);

}  // namespace wq::bench
