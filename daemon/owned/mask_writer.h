// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"
#include "machine/workqueue_fs.h"
#include "owned/mask_store.h"
#include "owned/scope_writer.h"

namespace wq {

// The only code that decides to write to masks, for MaskKeeper and the restorer. The rules are those of
// ScopeWriter: a mask is written only if its entry in the store announces it and has been saved; only the
// baseline needs no announcement. A mask that the entry does not know is an external writer's, and is left in
// place.
//
// Outcomes are those of ScopeWriter. `text` is the error, or the list of CPUs that were found. If a baseline
// was put back, it is the baseline's list, and a warning if isolated CPUs are in it.
class MaskWriter {
  public:
    MaskWriter(MaskFiles& files, MaskStore& store) : files_(files), store_(store) {}

    // Makes NAME hold CPUS: read, compare, write, read back. `unsupported`: the kernel stored another mask;
    // the baseline was put back.
    Outcome apply(const std::string& name, const CpuSet& cpus);
    // Puts the baseline back, bit for bit, if NAME holds a mask of ours.
    Outcome put_back(const std::string& name);

  private:
    [[nodiscard]] Outcome set(const MaskEntry& entry, const CpuSet& cpus, const std::string& text);
    [[nodiscard]] Outcome put_back(const MaskEntry& entry);
    [[nodiscard]] std::string let_in(const MaskEntry& entry) const;
    MaskFiles& files_;
    MaskStore& store_;
};

// Puts every baseline of STORE back if the file holds something of ours, and removes each entry for which
// nothing is left to do. Entries that could not be restored stay in STORE and are logged with their errno.
// Returns their number.
unsigned restore_masks(MaskFiles& files, MaskStore& store, Log& log);

}  // namespace wq
