// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "kernel/scope_files.h"
#include "tuner/baseline.h"

namespace wq {

// How one attempt to change a target ended.
struct Outcome {
    enum class Kind {
        done,         // the file holds what was wanted (`wrote` says whether that took a write)
        foreign,      // somebody else's word is in the file; nothing was written
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
};

// Makes NAME hold WORD (and STRICT, if given), as read, compare, write, read back. ENTRY has the baseline and
// must be on disk already, with WORD and STRICT in it. A word that is neither the baseline nor ours is left
// alone.
Outcome apply(ScopeFiles& files, const BaselineEntry& entry, const std::string& word,
              std::optional<bool> strict);

// As apply(), but with a write even where WORD is in place, so that the kernel makes the pools anew
// (kernel/workqueue.c, apply_workqueue_attrs()). VIA, if not empty, is written first and not read back: the
// module parameter ignores a value that it has already (wq_affn_dfl_set()).
Outcome rewrite(ScopeFiles& files, const BaselineEntry& entry, const std::string& word,
                std::optional<bool> strict, const std::string& via);

// Puts the baseline back, where what the target holds is ours. `done` and `foreign` and `gone` all mean that
// nothing of ours is left.
Outcome restore(ScopeFiles& files, const BaselineEntry& entry);

// Of a target of which somebody else wrote the word or the strictness: the other one, where that is ours,
// goes back.
Outcome restore_rest(ScopeFiles& files, BaselineEntry& entry);

// What a kernel may store when WORD is written, WORD aside. Before 7.1 names were matched by prefix, so that
// `cache_shard` became `cache` (kernel/workqueue.c, parse_affn_scope()). Empty: nothing else.
std::string misparse_of(const std::string& word);

// Sorts an errno.
Outcome::Kind kind_of_error(int code);

}  // namespace wq
