// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "engine/baseline.h"
#include "kernel/scope_files.h"

namespace wq {

// How one attempt to change a target ended.
struct Outcome {
    enum class Kind {
        done,         // the file holds what was wanted (`wrote` says whether that took a write)
        foreign,      // somebody else's value is in a file, and is left there
        unsupported,  // the kernel made another word of it; the baseline was put back
        gone,         // the target vanished or is another workqueue now
        permanent,    // EINVAL, EPERM, EROFS, ...: trying again would not help
        transient,    // ENOMEM, EBUSY, EAGAIN, EINTR; EMFILE and ENFILE: no file can be opened now
    };
    Kind kind = Kind::done;
    bool wrote = false;
    std::string text;         // the error, or the word that was found
    int code = 0;             // errno of an error
    std::string stored = {};  // what the kernel made of our word, where that was another: ours all the same
    bool of_strict = false;   // what was foreign is the strictness; the word is ours or the baseline
    bool wrote_word = false;  // which of the two files `wrote` is about
    bool wrote_strict = false;
};

// Makes the target of ENTRY hold WORD (and STRICT, if given), as read, compare, write, read back. They must
// have been announced to ENTRY, and that must be on disk already. What is somebody else's is left alone.
Outcome apply(ScopeFiles& files, const BaselineEntry& entry, const std::string& word,
              std::optional<bool> strict);

// As apply(), but with a write even where WORD is in place, so that the kernel makes the pools anew
// (kernel/workqueue.c, apply_workqueue_attrs()). VIA, if not empty, is written first and not read back: the
// module parameter ignores a value that it has already (wq_affn_dfl_set()).
Outcome rewrite(ScopeFiles& files, const BaselineEntry& entry, const std::string& word,
                std::optional<bool> strict, const std::string& via);

// Puts the baseline back, where what the target holds is ours; that must have been announced. `done` and
// `foreign` and `gone` all mean that nothing of ours is left. Of a target of which an external writer wrote
// the word or the strictness, the other one goes back.
Outcome restore(ScopeFiles& files, const BaselineEntry& entry);

// What the files of ENTRY hold now. SCOPE and STRICT are empty where they cannot be read.
struct Look {
    std::optional<ScopeFile> scope;
    std::optional<bool> strict;
    Found found;
};

// Looks, and settles ENTRY by what is found. A word that cannot be read leaves it as it was.
Look look_at(const ScopeFiles& files, BaselineEntry& entry);

// Whether nothing of ours is left in the files of ENTRY, and the word is the baseline. So it is of a target
// that is gone; what cannot be read may be ours.
bool is_back(const ScopeFiles& files, const BaselineEntry& entry);

// Sorts an errno.
Outcome::Kind kind_of_error(int code);

}  // namespace wq
