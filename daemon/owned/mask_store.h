// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"
#include "owned/baseline.h"

namespace wq {

// A mask before our first write, and the claim: every mask that the file may hold because of us. The claim is
// handled as in BaselineEntry: widened and saved before a write, and reduced to what is in place after it.
// Any other mask is an external writer's, also if it is the baseline.
struct MaskEntry {
    std::string name;  // of a workqueue, or kDefaultMask
    ino_t inode = 0;
    std::string baseline;               // text of the file; put back bit for bit
    std::vector<CpuSet> may_hold = {};  // Empty: the file holds the baseline, or an external writer's
    bool external = false;              // left to an external writer until a reload, also after a restart
    BaselineEntry::OnDisk on_disk = {};

    [[nodiscard]] CpuSet before() const;  // the baseline's CPUs
    [[nodiscard]] bool may_be_ours(const CpuSet& cpus) const;
    [[nodiscard]] Whose whose(const CpuSet& cpus) const;
    void allow(const CpuSet& cpus);  // adds to may_hold
    // Call before CPUS are written. The baseline and what is in place stay in the claim.
    void announce(const CpuSet& cpus);
    // Call before the baseline is put back.
    void announce_baseline();
    // Call when the file holds CPUS: reduces the claim to CPUS if they are ours, else to nothing. Returns
    // whose they were.
    Whose settle(const CpuSet& cpus);
};

// masks.json, next to baseline.json and by the same rules: replaced as a whole before the writes that it
// covers, and in /run, so a reboot deletes it.
class MaskStore {
  public:
    explicit MaskStore(std::string path) : path_(std::move(path)) {}

    // If the file is absent: no entries. Error: the file is unreadable or not ours. Then nothing can be
    // saved, and nothing may be written, because the baseline is not known.
    Status load();
    // Writes the file if it differs from what was last loaded or saved.
    Status save();

    [[nodiscard]] MaskEntry* find(const std::string& name);
    MaskEntry& put(MaskEntry entry);
    void remove(const std::string& name) { entries_.erase(name); }
    [[nodiscard]] const std::map<std::string, MaskEntry>& entries() const { return entries_; }
    [[nodiscard]] std::vector<std::string> names() const;

  private:
    Status mark_saved();
    std::string path_;
    std::map<std::string, MaskEntry> entries_;
    std::string saved_;    // the text on disk; empty for no file
    bool broken_ = false;  // load() failed: save() must not replace a file that was not read
};

}  // namespace wq
