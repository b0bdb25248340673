// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/workqueue.h"

namespace wq {

// Who decides what a target holds. If several apply, the first of this list decides.
enum class Holder : std::uint8_t {
    external,  // an external writer: nothing is written until a reload
    udev,      // a udev rule may opt the target out: nothing is written until udev has processed it
    slot,      // a slot of an experiment, which writes one arm after the other
    pin,       // an operator's order: a scope
    revert,    // an operator's order: the baseline; or @default, which must not move before a reload
    policy,    // the plan and the ledger
};

// Whose value a file holds.
enum class Whose : std::uint8_t { baseline, ours, foreign };

struct Found {
    Whose word = Whose::baseline;
    Whose strict = Whose::baseline;
    [[nodiscard]] bool is_ours() const { return word == Whose::ours || strict == Whose::ours; }
};

// What a target held before our first write, and the claim: every word that its file may hold because of us.
//
// Before a write, announce() adds the new word and the baseline to the claim (what is in place stays in it),
// and the claim is saved. After the write, settle() reduces the claim to what is in place, and it is saved
// again. So a settled entry says what the files hold, and any other value in them is of an external writer,
// also for the next process that loads the entry. A process that is killed between announce() and settle()
// leaves the wider claim. If an external writer writes one of the claimed values before the next look, it is
// taken for ours.
struct BaselineEntry {
    std::string name;
    ino_t inode = 0;
    std::string scope;           // first word of the file
    std::optional<bool> strict;  // affinity_strict; empty if the target has none
    // The words that the file may hold because of us. Empty: the file holds the baseline. The baseline is one
    // of them only while the entry is announced and not settled.
    std::vector<std::string> may_hold;
    // The strictness that we wrote, always the opposite of `strict`. Empty: the file holds the baseline, or a
    // value that does not matter to us. Until the entry is settled, the file may hold the baseline as well.
    std::optional<bool> may_strict;
    // The holder according to the file: `pin`, `revert`, `policy`, or `slot` (the restorer puts the target
    // back, even if settings are kept). ownership.h knows the current holder.
    Holder holder = Holder::policy;
    std::string pinned = {};  // the scope of a pin
    std::string why = {};     // why the daemon itself reverts @default; "" for an operator's order
    bool external = false;    // left to an external writer until a reload; then the order is in force again
    // Whether the claim on disk includes the current one. save() and load() set it; a wider claim clears it.
    struct OnDisk {
        bool yes = false;
        friend bool operator==(OnDisk, OnDisk) { return true; }  // not part of an entry's content
    } on_disk = {};

    [[nodiscard]] bool may_be_ours(const std::string& word) const;
    void allow(const std::string& word);  // adds to may_hold

    // Whether something of ours may be in the files.
    [[nodiscard]] bool has_claim() const { return !may_hold.empty() || may_strict.has_value(); }
    // Whose WORD and VALUE (a strictness) are, according to the claim alone. All code that needs to know what
    // is ours calls these. A strictness that was never ours is `foreign` if it is not the baseline. An empty
    // VALUE is not known, and is not ours.
    [[nodiscard]] Whose whose(const std::string& word) const;
    [[nodiscard]] Whose whose_strict(bool value) const;
    [[nodiscard]] Found whose(const std::string& word, std::optional<bool> value) const;
    // Call before WORD, and VALUE if given, are written. What is in place stays in the claim.
    void announce(const std::string& word, std::optional<bool> value = {});
    // Call before the baseline is put back, and if an external writer may have put it back.
    void announce_baseline();
    // Call when the files hold WORD and VALUE: reduces the claim to those of them that are ours. Returns
    // whose they were according to the earlier claim. An empty VALUE settles only the word.
    Found settle(const std::string& word, std::optional<bool> value);
    // Call when an external writer wrote the strictness (if STRICT) or the word (if not).
    void disown(bool strict);
    // Call when the files hold nothing of ours any more.
    void release();
    void hold(Holder by, const std::string& scope = "") {
        holder = by;
        pinned = scope;
        why.clear();
    }
    void hold_as(const BaselineEntry& other) {
        hold(other.holder, other.pinned);
        why = other.why;
    }
    // If a slot holds the target, the policy holds it from now on.
    void end_slot() {
        if (holder == Holder::slot) hold(Holder::policy);
    }
    // Of a settled entry: the word that the file holds, as far as we know.
    [[nodiscard]] const std::string& word_in_place() const {
        return may_hold.empty() ? scope : may_hold.front();
    }

    friend bool operator==(const BaselineEntry&, const BaselineEntry&) = default;
};

// The entry of a target that we never wrote to: its current values are the baseline.
BaselineEntry entry_of(const Workqueue& target);

// The word that a kernel may store instead of WORD. Before 7.1 names were matched by prefix, so `cache_shard`
// was stored as `cache` (kernel/workqueue.c, parse_affn_scope()). Empty: no other word.
std::string misparse_of(const std::string& word);

// "pin" or "revert" for an order, "" for other holders.
std::string_view name_of_order(Holder holder);

// Whether HOLDER is an operator's order.
inline bool is_order(Holder holder) {
    return holder == Holder::pin || holder == Holder::revert;
}

// baseline.json: replaced as a whole, before the writes that it covers. It is in /run, so a reboot, which
// resets the kernel, deletes it too.
class BaselineStore {
  public:
    explicit BaselineStore(std::string path);

    // If the file is absent: no entries. This is checked twice, because it means that nothing was ever
    // written. Error: the file is unreadable or not ours. Then nothing may be written to /sys, because the
    // baseline is not known.
    Status load();
    // Writes the file if it differs from what was last loaded or saved.
    Status save();

    [[nodiscard]] BaselineEntry* find(const std::string& name);
    void put(BaselineEntry entry);
    void remove(const std::string& name);
    [[nodiscard]] const std::map<std::string, BaselineEntry>& entries() const { return entries_; }

  private:
    Status mark_saved();  // always succeeds
    std::string path_;
    std::map<std::string, BaselineEntry> entries_;
    // Hash of the entries on disk. Empty after a failed save, which may have replaced the file or not.
    std::optional<std::uint64_t> saved_;
    bool broken_ = false;  // load() failed: save() must not replace a file that was not read
};

}  // namespace wq
