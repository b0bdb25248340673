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
#include "state/state_file.h"

namespace wq {

// The kinds of files that we write.
enum class Knob : std::uint8_t {
    scope,   // affinity_scope, or the module parameter
    strict,  // affinity_strict
    mask,    // cpumask, or the mask of all unbound workqueues
    // Of `ab` and `bench`, by WorkqueueFiles::write_value():
    value,    // a file of /sys or /proc, whose path is the name; the text is its whole content
    command,  // an arm of commands; the baseline is the command that undoes it
    device,   // devices of a benchmark; the baseline is what is removed
};
inline bool is_of_lab(Knob file) {
    return file >= Knob::value;
}

// The claim of a file of which we do not know yet how it shows what we write. No file has this text.
inline const std::string kAnyText(1, '\0');

// The value in the content of a file: the word in brackets of "mq-deadline [none]" if there is exactly one,
// else the content without line ends.
std::string value_in(std::string_view content);

// TEXT of a file for people: "smt", "strict", "0-7"; quoted: "'smt'", "'strict'", "CPUs 0-7"; "" for a
// command or a device.
std::string plain(Knob file, const std::string& text);
std::string quoted(Knob file, const std::string& text);
inline std::string text_of_strict(bool strict) {
    return strict ? "1" : "0";
}

// Who decides what a target holds. If several apply, the first of this list decides.
enum class Holder : std::uint8_t {
    external,  // an external writer: nothing is written until a reload
    udev,      // a udev rule may opt the target out: nothing is written until udev has processed it
    slot,      // a slot of an experiment, which writes one arm after the other
    pin,       // an operator's order: a scope
    revert,    // an operator's order: the baseline; or @default, which must not move before a reload
    policy,    // the plan and the ledger
};

// "pin" or "revert" for an order, "" for other holders.
std::string_view name_of_order(Holder holder);

// Whether HOLDER is an operator's order.
inline bool is_order(Holder holder) {
    return holder == Holder::pin || holder == Holder::revert;
}

// Whose value a file holds.
enum class Whose : std::uint8_t { baseline, ours, foreign };

// A file of the kernel that may be ours: its text before our first write, and the claim: every text that it
// may hold because of us.
//
// Before a write, announce() adds the new text and the baseline to the claim, and the claim is saved. After
// the write, settle() reduces it to what is in place, and it is saved again. So any other text in the file is
// of an external writer, also for the next process. A process that is killed between the two leaves the wider
// claim: an external write of one of its texts before the next look is taken for ours.
struct Attribute {
    Knob file = Knob::scope;
    std::string baseline;  // of a scope the first word; of a mask the text, put back bit for bit
    std::vector<std::string> claim = {};  // empty: the file holds nothing of ours
    // Whether the claim on disk includes the current one. save() and load() set it; a wider claim clears it.
    struct OnDisk {
        bool yes = false;
        friend bool operator==(OnDisk, OnDisk) { return true; }  // not part of the content
    } on_disk = {};

    // Masks are compared as sets of CPUs, because the kernel's zero padding varies. Of values with a word in
    // brackets that word is compared, because the others change when a module is loaded.
    [[nodiscard]] bool same(const std::string& a, const std::string& b) const;
    [[nodiscard]] bool is_claimed(const std::string& text) const;
    [[nodiscard]] bool may_be_ours() const;  // whether the claim has another text than the baseline
    // Whose TEXT is, according to the claim alone. All code that needs to know what is ours calls this.
    [[nodiscard]] Whose whose(const std::string& text) const;
    void allow(const std::string& text);     // adds to the claim
    void announce(const std::string& text);  // call before TEXT is written
    // Call before the baseline is put back, and if an external writer may have put it back.
    void announce_baseline();
    // The file holds TEXT: reduces the claim to it if it is ours, else to nothing. Returns whose it was.
    Whose settle(const std::string& text);

    friend bool operator==(const Attribute&, const Attribute&) = default;
};

// What the files of a target hold or should hold. `main`: the word of the scope, or the text of the mask.
struct Values {
    std::string main = {};  // empty: not known
    std::optional<bool> strict = {};
};

struct Found {
    Whose word = Whose::baseline;
    Whose strict = Whose::baseline;
    [[nodiscard]] bool is_ours() const { return word == Whose::ours || strict == Whose::ours; }
};

// The files of one target that are read and written together: its scope and strictness, or its mask.
struct Owned {
    std::string name;  // of a workqueue, kDefaultTarget or kDefaultMask
    ino_t inode = 0;
    Attribute main = {};                   // the scope or the mask
    std::optional<Attribute> strict = {};  // empty if there is no such file
    // The holder according to the file: `pin`, `revert`, `policy`, or `slot` (the restorer puts the target
    // back, even if settings are kept). Target::holder() is the current one.
    Holder holder = Holder::policy;
    std::string note = {};  // the scope of a pin; why the daemon itself reverts @default
    bool external = false;  // left to an external writer until a reload; then the order is in force again

    [[nodiscard]] bool is_mask() const { return main.file == Knob::mask; }
    [[nodiscard]] bool is_on_disk() const { return main.on_disk.yes && (!strict || strict->on_disk.yes); }
    [[nodiscard]] Attribute& of(Knob file) { return file == Knob::strict ? *strict : main; }
    // Whether something of ours may be in the files.
    [[nodiscard]] bool has_claim() const { return !main.claim.empty() || (strict && !strict->claim.empty()); }
    // A strictness that is not known is not ours; one of a target without that file is foreign.
    [[nodiscard]] Found whose(const Values& values) const;
    void announce(const Values& values);
    void announce_baseline();
    Found settle(const Values& values);
    void release();  // call when the files hold nothing of ours any more

    void hold(Holder by, const std::string& what = "") {
        holder = by;
        note = what;
    }
    // If a slot holds the target, the policy holds it from now on.
    void end_slot() {
        if (holder == Holder::slot) hold(Holder::policy);
    }
    // Whether the target stays at its baseline for a reason that outlives the daemon.
    [[nodiscard]] bool must_stay() const { return holder == Holder::revert && !note.empty(); }
    // Whether it has nothing to say: the files hold the baseline, and nobody ordered that.
    [[nodiscard]] bool is_settled() const { return !has_claim() && !external && holder == Holder::policy; }

    friend bool operator==(const Owned&, const Owned&) = default;
};

// The entry of a target that we never wrote to: its current values are the baseline.
Owned entry_of(const Workqueue& target);

// The word that a kernel may store instead of WORD. Before 7.1 names were matched by prefix, so `cache_shard`
// was stored as `cache` (kernel/workqueue.c, parse_affn_scope()). Empty: no other word.
std::string misparse_of(const std::string& word);

using OwnedEntries = std::map<std::string, Owned>;  // by name

// The content of owned.json: the entries of targets, and those of masks.
struct OwnedFile {
    OwnedEntries scopes;
    OwnedEntries masks;
    bool lab = false;  // not in the file: whether it may have what only `ab` and `bench` write
    friend void describe(JsonPlace& at, OwnedFile& file);
};

// owned.json of the daemon, or lab.json of `ab` and `bench`, which only root may read, because commands may
// have secrets. Replaced as a whole, before the writes that it covers. In /run: a reboot resets the kernel,
// too.
class OwnedStore {
  public:
    enum class Of : std::uint8_t { daemon, lab };
    explicit OwnedStore(const std::string& path, Of of = Of::daemon);

    // If the file is absent: no entries. Error: the file is unreadable or not ours. Then nothing may be
    // written to /sys, because the baselines are not known, and the file is never replaced.
    Status load();
    // Writes the file if it differs from what was last loaded or saved. Removes a lab.json without entries.
    Status save();

    // FILE is `scope` for the entries of targets, and `mask` for those of masks.
    [[nodiscard]] Owned* find(const std::string& name, Knob file = Knob::scope);
    Owned& put(Owned entry);
    void remove(const std::string& name, Knob file = Knob::scope);
    [[nodiscard]] const OwnedEntries& entries(Knob file = Knob::scope) const {
        return file == Knob::mask ? now_.masks : now_.scopes;
    }
    [[nodiscard]] std::vector<Owned*> all();  // of both kinds
    // After a reload: forgets external writers and orders to revert, may set again what others put back.
    void start_over(Knob file);
    // For an end that keeps settings: ends the orders, marks for the restorer what could not be put back.
    // Saves.
    Status keep();

  private:
    void mark_saved();
    OwnedEntries& of(Knob file) { return file == Knob::mask ? now_.masks : now_.scopes; }

    StateFile<OwnedFile> file_;
    OwnedFile now_;
    bool there_ = false;  // whether there may be a file
};

}  // namespace wq
