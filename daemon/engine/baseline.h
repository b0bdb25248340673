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

// Who decides what a target holds. If several could, it is the first of this list.
enum class Holder : std::uint8_t {
    external,  // an external writer: nothing is written until a reload
    udev,      // a rule of udev may set the target aside: nothing is written until udev has processed it
    slot,      // a slot of an experiment: one arm after the other
    pin,       // an operator's order: a scope
    revert,    // an operator's order: the baseline
    policy,    // the plan, and what the ledger makes of it
};

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
    // Who holds the target according to the file: `slot` (what a process that finds it puts back, even if
    // settings are kept), `pin`, `revert` or `policy`. ownership.h knows who holds it now.
    Holder holder = Holder::policy;
    std::string pinned = {};  // the scope, of a pin
    bool external = false;    // an external writer's until a reload; the order is in force again after that
    // Whether the claim on disk includes this one. save() and load() set it; a wider claim clears it.
    struct OnDisk {
        bool yes = false;
        friend bool operator==(OnDisk, OnDisk) { return true; }  // it is not part of what an entry says
    } on_disk = {};

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
    void hold(Holder by, const std::string& scope = "") {
        holder = by;
        pinned = scope;
    }
    // The target goes to the policy, if a slot had it.
    void end_slot() {
        if (holder == Holder::slot) hold(Holder::policy);
    }
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

// Whether HOLDER is an operator's order.
inline bool is_order(Holder holder) {
    return holder == Holder::pin || holder == Holder::revert;
}

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
    Status mark_saved();  // `done`
    std::string path_;
    std::map<std::string, BaselineEntry> entries_;
    // Hash of what is on disk; empty after a save that failed, which may have replaced it or not.
    std::optional<std::uint64_t> saved_;
    bool broken_ = false;  // load() failed: save() would bury what it could not read
};

}  // namespace wq
