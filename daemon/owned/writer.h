// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/journal.h"
#include "machine/paths.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"

namespace wq {

// How one attempt to change a target ended.
struct Outcome {
    enum class Kind {
        done,         // the files hold what was wanted (`wrote` says whether that took a write)
        foreign,      // an external writer's value is in a file, and is left there
        unsupported,  // the kernel stored another value; the baseline was put back
        gone,         // the target vanished or is another workqueue now
        permanent,    // EINVAL, EPERM, EROFS, ...: trying again would not help
        transient,    // ENOMEM, EBUSY, EAGAIN, EINTR; EMFILE and ENFILE: no file can be opened now
    };
    Kind kind = Kind::done;
    bool wrote = false;
    std::string text;         // the error, or the value that was found, as plain()
    int code = 0;             // errno of an error
    Knob file = Knob::scope;  // to which `text` applies
    std::string stored = {};  // what the kernel stored instead of ours, or how it shows a value; it is ours
    std::uint64_t took = 0;   // us, of all tries; if it was timed

    // The value that was found, quoted.
    [[nodiscard]] std::string found() const { return file == Knob::mask ? "CPUs " + text : "'" + text + "'"; }
    // Whether something of ours may be left.
    [[nodiscard]] bool failed() const { return kind == Kind::permanent || kind == Kind::transient; }
};

// What the files of an entry hold now; empty if they cannot be read.
struct Look {
    std::optional<ScopeFile> scope = {};
    std::optional<bool> strict = {};
    std::optional<MaskFile> mask = {};
    Found found = {};
};

// Looks, and settles ENTRY with what is found. If its main file cannot be read, ENTRY is unchanged. Not for
// an entry of lab.json.
Look look_at(const WorkqueueFiles& files, Owned& entry);

// Classifies an errno.
Outcome::Kind kind_of_error(int code);

// Calls WRITES, and takes the time.
template <class Writes>
Outcome timed(const Writes& writes) {
    const std::int64_t began = clock_ns(CLOCK_MONOTONIC);
    Outcome out = writes();
    out.took = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC) - began) / 1000;
    return out;
}

// The only code that decides to write to the kernel's files. It writes a value only if the attribute
// announces it, and the store has been saved since; otherwise the outcome is `permanent`. Only the baseline
// needs no announcement: it was on disk before it was overwritten. A value that the attribute does not know,
// or that changed since it was SEEN, is an external writer's, and is left in place. A strictness is taken
// away before the scope changes and set after it, so that no scope is strict without need.
class OwnedWriter {
  public:
    OwnedWriter(WorkqueueFiles& files, OwnedStore& store) : files_(files), store_(store) {}

    // Makes the files of NAME hold VALUES: read, compare, write, read back. FILE: `scope`, or `mask` for a
    // mask. SEEN: what the caller last saw. If a file holds the wanted value now, and did not when it was
    // SEEN, an external writer wrote it: `foreign`. ANEW: writes even if the word is in place, so that the
    // kernel creates the pools again (kernel/workqueue.c, apply_workqueue_attrs()).
    Outcome apply(const std::string& name, const Values& values, const Values& seen = {},
                  Knob file = Knob::scope, bool anew = false);
    Outcome rewrite(const std::string& name, const Values& values, const Values& seen = {}) {
        return apply(name, values, seen, Knob::scope, true);
    }
    // Puts the baselines back, if NAME holds something of ours. The caller has announced them. `done`,
    // `foreign` and `gone` all mean that nothing of ours is left. If an external writer wrote the word or the
    // strictness, the other one is put back.
    Outcome put_back(const std::string& name, const Values& seen = {}, Knob file = Knob::scope);
    // Puts one file of ENTRY back, if it holds something of ours.
    Outcome put_back(const Owned& entry, Knob file);
    // What FILE of ENTRY holds. A command or a device cannot be read: it holds what is claimed.
    [[nodiscard]] Result<std::string> read(const Owned& entry, Knob file) const;

  private:
    struct How {
        bool anew = false;  // write even what is in place
        std::optional<std::string> seen = {};
    };
    [[nodiscard]] Outcome set(const Owned& stored, const Values& seen, const Values& values, const How& how);
    [[nodiscard]] Outcome set(const Owned& entry, const Attribute& attribute, const std::string& text,
                              const How& how);
    [[nodiscard]] Outcome put_back(const Owned& entry);
    [[nodiscard]] Status write(const Owned& entry, Knob file, const std::string& text);

    WorkqueueFiles& files_;
    OwnedStore& store_;
};

// In this order no scope is strict without need, and no follower of @default moves twice.
enum class RestoreStep { strict_off, parameter, mask, mask_of_all, scope, strict_on, device };
RestoreStep restore_step_of(const Owned& entry, Knob file);

// Puts every baseline of STORE back, in this order, if the file holds something of ours, and removes each
// entry for which nothing is left to do. Returns how many could not be restored; they stay in STORE and are
// logged. ONLY_SLOTS: keeps settings, and restores only @default and targets of a slot that was cut off.
unsigned restore_all(WorkqueueFiles& files, OwnedStore& store, Log& log, bool only_slots = false);

// How the journal names a setting, a baseline that was put back, and an external writer.
struct FileWords {
    const char* label;  // "cpumask "; "" for a scope
    Event set;
    Event restored;
    Event external;
    const char* old_field;
    const char* new_field;
    const char* back;  // "back to"
    const char* failed = "not put back to";
};
const FileWords& words_of(const Owned& entry);
// "; isolated CPUs 2-3 may get unbound work ...": what putting the mask of ENTRY back lets in; "" if nothing.
std::string let_in(const WorkqueueFiles& files, const Owned& entry);

// Takes the lock in the runtime directory, which every process that writes scopes has: the daemon, a restore,
// `wq-tunectl ab` or `bench`. It lasts until all copies of the descriptor are closed, also those of forked
// processes. Waits up to 2 s. Error: EWOULDBLOCK if another process has it for longer.
Result<Fd> take_lock(const Paths& paths);

}  // namespace wq
