// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/result.h"

namespace wq {

// What a target held before we first wrote to it, and every word that it may hold because of us.
struct BaselineEntry {
    std::string name;
    ino_t inode = 0;
    std::string scope;           // first word of the file
    std::optional<bool> strict;  // affinity_strict; empty where the target has none
    std::vector<std::string>
        may_hold;                    // words we wrote or were about to, and what the kernel may make of them
    std::optional<bool> may_strict;  // the strictness we wrote or were about to
    std::string order;               // "pin SCOPE" or "revert" by an operator, "external", "trial", or ""

    [[nodiscard]] bool may_be_ours(const std::string& word) const;
    void allow(const std::string& word);  // adds to may_hold
    friend bool operator==(const BaselineEntry&, const BaselineEntry&) = default;
};

// What stands in `order`. An entry that is not there (nullptr) has none.
inline constexpr const char* kPin = "pin ";
inline constexpr const char* kRevert = "revert";
inline constexpr const char* kExternal = "external";  // somebody else's until a reload
inline constexpr const char* kTrial =
    "trial";  // between two writes of a trial: goes back even if settings are kept
std::optional<std::string> pinned_scope(const BaselineEntry* entry);
bool is_reverted(const BaselineEntry* entry);
bool is_external(const BaselineEntry* entry);
bool is_on_trial(const BaselineEntry* entry);

// baseline.json: replaced as a whole, before the writes it covers. Lives in /run, so that a reboot, which
// resets the kernel, forgets it too.
class BaselineStore {
  public:
    explicit BaselineStore(std::string path);

    // Absent file: no entries; that is asked twice, for it forgets all. Error: unreadable or not ours; then
    // nothing may be written to /sys, since what the kernel had before us is not known.
    Status load();
    // Writes the file if it differs from what was last loaded or saved.
    Status save();

    [[nodiscard]] BaselineEntry* find(const std::string& name);
    void put(BaselineEntry entry);
    void remove(const std::string& name);
    [[nodiscard]] const std::map<std::string, BaselineEntry>& entries() const { return entries_; }

  private:
    std::string path_;
    std::map<std::string, BaselineEntry> entries_;
    // Hash of what is on disk; empty after a save that failed, which may have replaced it or not.
    std::optional<std::uint64_t> saved_;
    bool broken_ = false;  // load() failed: save() would bury what it could not read
};

}  // namespace wq
