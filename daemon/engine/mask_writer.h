// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"
#include "engine/mask_store.h"
#include "engine/scope_writer.h"
#include "kernel/mask_files.h"

namespace wq {

// The only code that decides to write to masks: for MaskKeeper and the restorer. By the rules of ScopeWriter:
// a mask is written only if its entry in the store announces it and a save has put that on disk; the baseline
// alone needs no announcement. A mask that the entry does not know is an external writer's and stays.
//
// Outcomes are ScopeWriter's; `text` is the error, or the CPUs that were found, as a list. Of a baseline that
// was put back it is the baseline's list, and what follows from it.
class MaskWriter {
  public:
    MaskWriter(MaskFiles& files, MaskStore& store) : files_(files), store_(store) {}

    // Makes NAME hold CPUS: read, compare, write, read back. `unsupported`: the kernel made another mask of
    // it; the baseline was put back.
    Outcome apply(const std::string& name, const CpuSet& cpus);
    // Puts the baseline back, bit for bit, where what NAME holds is ours.
    Outcome put_back(const std::string& name);

  private:
    [[nodiscard]] Outcome set(const MaskEntry& entry, const CpuSet& cpus, const std::string& text);
    [[nodiscard]] Outcome put_back(const MaskEntry& entry);
    [[nodiscard]] std::string let_in(const MaskEntry& entry) const;
    MaskFiles& files_;
    MaskStore& store_;
};

// Puts every baseline of STORE back where what the file holds is ours, and removes each entry that is settled
// so. What could not be restored stays in STORE and is logged with its errno. Returns how many stayed.
unsigned restore_masks(MaskFiles& files, MaskStore& store, Log& log);

}  // namespace wq
