// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
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

    // Something of ours may be left.
    [[nodiscard]] bool failed() const { return kind == Kind::permanent || kind == Kind::transient; }
};

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

Outcome error_outcome(const Error& error, bool wrote);
// `permanent`: what NAME held before us is not on disk, and so nothing is written.
Outcome not_announced(const std::string& name);

// A busy kernel gets three tries; this runs when there is no later. WRITER: of scopes, or of masks.
template <class Writer>
Outcome put_back_with_retries(Writer& writer, const std::string& name) {
    Outcome outcome = writer.put_back(name);
    for (int i = 1; i < 3 && outcome.kind == Outcome::Kind::transient; i++) outcome = writer.put_back(name);
    return outcome;
}

// Calls WRITES; TOOK: for how long, in us.
template <class Writes>
Outcome timed(std::uint64_t& took, const Writes& writes) {
    const std::int64_t began = clock_ns(CLOCK_MONOTONIC);
    Outcome out = writes();
    took = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC) - began) / 1000;
    return out;
}

// What a caller last saw in the files of a target. An empty word: it does not know.
struct Seen {
    std::string word = {};
    std::optional<bool> strict = {};
};

// The only code that decides to write to scope files that are not our own: for the engine, orders,
// experiments, `wq-tunectl ab` and `bench`, and the restorer.
//
// It writes a word or a strictness only if the entry of the target in the store announces it, and a save of
// the store has put that on disk. Otherwise the outcome is `permanent`, and no file was written. The baseline
// alone needs no announcement: what is put back was on disk before it was overwritten.
//
// A value in a file that the entry does not know, or that changed since SEEN, is an external writer's and
// stays.
class ScopeWriter {
  public:
    ScopeWriter(ScopeFiles& files, BaselineStore& store) : files_(files), store_(store) {}

    // Makes NAME hold WORD (and STRICT, if given): read, compare, write, read back.
    Outcome apply(const std::string& name, const std::string& word, std::optional<bool> strict,
                  const Seen& seen = {});
    // Like apply(), but writes even if WORD is in place, so that the kernel makes the pools anew
    // (kernel/workqueue.c, apply_workqueue_attrs()). VIA, if not empty, is written first and not read back:
    // the module parameter ignores a value that it has already (wq_affn_dfl_set()).
    Outcome rewrite(const std::string& name, const std::string& word, std::optional<bool> strict,
                    const std::string& via = "");
    // Puts the baseline back, where what NAME holds is ours; that must have been announced. `done`, `foreign`
    // and `gone` all mean that nothing of ours is left. If an external writer wrote the word or the
    // strictness, the other one goes back.
    Outcome put_back(const std::string& name, const Seen& seen = {});

  private:
    // Whether what is in place is written anyway, and through which other word.
    struct Anew {
        bool always = false;
        std::string via = {};
    };
    [[nodiscard]] Outcome set(const std::string& name, const Seen& seen, const std::string& word,
                              std::optional<bool> strict, const Anew& anew);
    [[nodiscard]] Outcome put_back(const BaselineEntry& entry);
    [[nodiscard]] Outcome set_scope(const BaselineEntry& entry, const std::string& word, const Anew& anew);
    [[nodiscard]] Outcome set_strict(const BaselineEntry& entry, bool strict, bool always);
    [[nodiscard]] Status write_scope(const BaselineEntry& entry, const std::string& word);
    [[nodiscard]] Status write_strict(const BaselineEntry& entry, bool strict);

    ScopeFiles& files_;
    BaselineStore& store_;
};

}  // namespace wq
