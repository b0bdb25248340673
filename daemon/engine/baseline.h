// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/workqueue.h"

namespace wq {

// Whose value a file was found to hold.
enum class Whose : std::uint8_t { baseline, ours, foreign };

struct Found {
    Whose word = Whose::baseline;
    Whose strict = Whose::baseline;
    [[nodiscard]] bool is_ours() const { return word == Whose::ours || strict == Whose::ours; }
};

// What a target held before we first wrote to it, and the claim: every word that it may hold because of us.
//
// The claim is exact. Before a write it is widened to what the file holds, to what is to be written, and to
// the baseline (announce()), and saved; after the write it is narrowed to what is in place (settle()), and
// saved. So a settled entry says what stands in the files, and any other value there is somebody else's: in
// memory, and for the next process. A process that is killed between announcement and narrowing leaves the
// wide claim; what somebody else wrote of just those values between our last look and the next one cannot be
// told from ours.
struct BaselineEntry {
    std::string name;
    ino_t inode = 0;
    std::string scope;           // first word of the file
    std::optional<bool> strict;  // affinity_strict; empty where the target has none
    // The words that the file may hold because of us. Empty: it holds the baseline. The baseline is among
    // them only while the entry is announced and not settled.
    std::vector<std::string> may_hold;
    // The strictness that is ours, always the opposite of `strict`. Empty: it is at its baseline, or nothing
    // that we care for. While the entry is not settled the baseline is possible, too.
    std::optional<bool> may_strict;
    std::string order;      // "pin SCOPE" or "revert" by an operator, "trial", or ""
    bool external = false;  // somebody else's until a reload

    [[nodiscard]] bool may_be_ours(const std::string& word) const;
    void allow(const std::string& word);  // adds to may_hold

    // Whether something of ours may be in the files.
    [[nodiscard]] bool has_claim() const { return !may_hold.empty() || may_strict.has_value(); }
    // Whose WORD and VALUE (a strictness) are, by the claim alone: everything that decides upon what is ours
    // asks here. A strictness that was never ours is `foreign` where it is not the baseline; an empty one is
    // not known, and not ours.
    [[nodiscard]] Whose whose(const std::string& word) const;
    [[nodiscard]] Whose whose_strict(bool value) const;
    [[nodiscard]] Found whose(const std::string& word, std::optional<bool> value) const;
    // WORD, and VALUE where given, are about to be written; what is in place stays in the claim.
    void announce(const std::string& word, std::optional<bool> value = {});
    // The baseline is about to be put back, or may have been put back by somebody else.
    void announce_baseline();
    // The files hold WORD and VALUE: the claim has these, where they are ours, and no other. Returns whose
    // they were by the claim before. An empty VALUE settles the word alone.
    Found settle(const std::string& word, std::optional<bool> value);
    // Somebody else wrote the strictness (STRICT), or else the word.
    void disown(bool strict);
    // Nothing of ours is there any more.
    void release();
    // Of a settled entry: the word that the file holds, as far as we know.
    [[nodiscard]] const std::string& word_in_place() const {
        return may_hold.empty() ? scope : may_hold.front();
    }

    friend bool operator==(const BaselineEntry&, const BaselineEntry&) = default;
};

// The entry of a target that we never wrote to: all it holds is the baseline.
BaselineEntry entry_of(const Workqueue& target);

// What a kernel may store when WORD is written, WORD aside. Before 7.1 names were matched by prefix, so that
// `cache_shard` became `cache` (kernel/workqueue.c, parse_affn_scope()). Empty: nothing else.
std::string misparse_of(const std::string& word);

// What stands in `order`. An entry that is not there (nullptr) has none.
inline constexpr const char* kPin = "pin ";
inline constexpr const char* kRevert = "revert";
inline constexpr const char* kTrial =
    "trial";  // between two writes of a trial: goes back even if settings are kept
std::optional<std::string> pinned_scope(const BaselineEntry* entry);
bool is_reverted(const BaselineEntry* entry);
bool is_on_trial(const BaselineEntry* entry);
// Somebody else's until a reload, whatever was ordered before.
bool is_external(const BaselineEntry* entry);

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
