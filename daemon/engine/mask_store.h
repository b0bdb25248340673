// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"
#include "engine/baseline.h"

namespace wq {

// What a mask was before we first wrote it, and the claim: every mask that the file may hold because of us.
// The claim is widened and saved before a write, and narrowed to what is in place after it, as BaselineEntry
// has it for scopes: any other mask is an external writer's, the baseline included.
struct MaskEntry {
    std::string name;  // of a workqueue, or kDefaultMask
    ino_t inode = 0;
    std::string baseline;               // as the file had it, which is put back bit for bit
    std::vector<CpuSet> may_hold = {};  // Empty: the file holds the baseline, or an external writer's
    bool external = false;              // an external writer's until a reload, and over a restart
    BaselineEntry::OnDisk on_disk = {};

    [[nodiscard]] CpuSet before() const;  // the baseline's CPUs
    [[nodiscard]] bool may_be_ours(const CpuSet& cpus) const;
    [[nodiscard]] Whose whose(const CpuSet& cpus) const;
    void allow(const CpuSet& cpus);  // adds to may_hold
    // CPUS are about to be written; the baseline and what is in place stay in the claim.
    void announce(const CpuSet& cpus);
    // The baseline is about to be put back.
    void announce_baseline();
    // The file holds CPUS: the claim has these where they are ours, and no others. Returns whose they were.
    Whose settle(const CpuSet& cpus);
};

// masks.json, beside baseline.json and by the same rules: replaced as a whole before the writes that it
// covers, in /run, so that a reboot forgets it.
class MaskStore {
  public:
    explicit MaskStore(std::string path) : path_(std::move(path)) {}

    // Absent file: no entries. Error: unreadable or not ours; then nothing can be saved, and so nothing may
    // be written, since what the kernel had before us is not known.
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
    bool broken_ = false;  // load() failed: save() would bury what it could not read
};

}  // namespace wq
