// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "machine/workqueue_fs.h"
#include "owned/baseline.h"

namespace wq {

// How one attempt to change a target ended.
struct Outcome {
    enum class Kind {
        done,         // the file holds what was wanted (`wrote` says whether that took a write)
        foreign,      // an external writer's value is in a file, and is left there
        unsupported,  // the kernel stored another word; the baseline was put back
        gone,         // the target vanished or is another workqueue now
        permanent,    // EINVAL, EPERM, EROFS, ...: trying again would not help
        transient,    // ENOMEM, EBUSY, EAGAIN, EINTR; EMFILE and ENFILE: no file can be opened now
    };
    Kind kind = Kind::done;
    bool wrote = false;
    std::string text;         // the error, or the word that was found
    int code = 0;             // errno of an error
    std::string stored = {};  // the word that the kernel stored instead of ours; it counts as ours
    bool of_strict = false;   // the foreign value is the strictness; the word is ours or the baseline
    bool wrote_word = false;  // which of the two files `wrote` is about
    bool wrote_strict = false;

    // Whether something of ours may be left.
    [[nodiscard]] bool failed() const { return kind == Kind::permanent || kind == Kind::transient; }
};

// What the files of ENTRY hold now. SCOPE and STRICT are empty if they cannot be read.
struct Look {
    std::optional<ScopeFile> scope;
    std::optional<bool> strict;
    Found found;
};

// Looks, and settles ENTRY with what is found. If the word cannot be read, ENTRY is unchanged.
Look look_at(const ScopeFiles& files, BaselineEntry& entry);

// Whether nothing of ours is left in the files of ENTRY, and the word is the baseline. Also true if the
// target is gone. False if a file cannot be read, because it may hold something of ours.
bool is_back(const ScopeFiles& files, const BaselineEntry& entry);

// Classifies an errno.
Outcome::Kind kind_of_error(int code);

Outcome error_outcome(const Error& error, bool wrote);
// The outcome `permanent`: the baseline of NAME is not on disk, so nothing was written.
Outcome not_announced(const std::string& name);

// Tries up to three times after transient errors, because there is no later. WRITER: of scopes, or of masks.
template <class Writer>
Outcome put_back_with_retries(Writer& writer, const std::string& name) {
    Outcome outcome = writer.put_back(name);
    for (int i = 1; i < 3 && outcome.kind == Outcome::Kind::transient; i++) outcome = writer.put_back(name);
    return outcome;
}

// Calls WRITES. TOOK: duration in us.
template <class Writes>
Outcome timed(std::uint64_t& took, const Writes& writes) {
    const std::int64_t began = clock_ns(CLOCK_MONOTONIC);
    Outcome out = writes();
    took = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC) - began) / 1000;
    return out;
}

// What a caller last saw in the files of a target. An empty word: not known.
struct Seen {
    std::string word = {};
    std::optional<bool> strict = {};
};

// The only code that decides to write to scope files that are not our own: for the engine, orders,
// experiments, `wq-tunectl ab` and `bench`, and the restorer.
//
// It writes a word or a strictness only if the entry of the target in the store announces it, and the store
// has been saved since. Otherwise the outcome is `permanent`, and no file was written. Only the baseline
// needs no announcement: it was on disk before it was overwritten.
//
// A value in a file that the entry does not know, or that changed since SEEN, is an external writer's, and is
// left in place.
class ScopeWriter {
  public:
    ScopeWriter(ScopeFiles& files, BaselineStore& store) : files_(files), store_(store) {}

    // Makes NAME hold WORD (and STRICT, if given): read, compare, write, read back.
    Outcome apply(const std::string& name, const std::string& word, std::optional<bool> strict,
                  const Seen& seen = {});
    // Like apply(), but writes even if WORD is in place, so that the kernel creates the pools again
    // (kernel/workqueue.c, apply_workqueue_attrs()). VIA, if not empty, is written first and not read back:
    // the module parameter ignores a write of its current value (wq_affn_dfl_set()).
    Outcome rewrite(const std::string& name, const std::string& word, std::optional<bool> strict,
                    const std::string& via = "");
    // Puts the baseline back, if NAME holds something of ours. The caller has announced the baseline. `done`,
    // `foreign` and `gone` all mean that nothing of ours is left. If an external writer wrote the word or the
    // strictness, the other one is put back.
    Outcome put_back(const std::string& name, const Seen& seen = {});

  private:
    // Whether to write even what is in place, and which other word to write before it.
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
