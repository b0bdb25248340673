// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "state/described.h"

// Every store and log of this project is a StateFile (replaced as a whole) or an AppendLog (grows by lines).
// Marks, the lists of CPUs and pods, status.json and the metrics are neither: they hold no state of ours.
// A new one takes three steps:
//   1. void describe(JsonPlace& at, Coins& coins);  members and their ranges, see described.h
//   2. a StateFile<Coins> with {limit, version, what becomes of a broken file}
//   3. load() at the start of the only writer, save() at each change; read() for whoever only looks.
// The restorer (wq-tuned-restore) uses them too: nothing here needs more than the C library.

namespace wq {

enum class IfBroken {
    set_aside,  // renamed to PATH.broken by load(); the owner begins anew
    refuse,     // stays, and is never replaced: what it says is still to be done
};

struct StateRules {
    std::size_t limit;  // bytes; a larger file is broken
    int version = 1;    // a file of another version is broken
    IfBroken if_broken = IfBroken::set_aside;
    unsigned mode = 0644;
    // Whether text that is not UTF-8 may be replaced by U+FFFD; else saving it fails, because the file could
    // not be read back as the same bytes.
    bool may_replace_bytes = false;
};

using StateDescription = std::function<void(JsonPlace&)>;

// The part that does not depend on the content.
class StateFileBase {
  public:
    StateFileBase(std::string path, StateRules rules) : path_(std::move(path)), rules_(rules) {}
    [[nodiscard]] const std::string& path() const { return path_; }
    // False after a load() that found a file which must not be replaced. Only for those who save the text()
    // themselves, outside of the event loop.
    [[nodiscard]] bool may_save() const { return !refused_; }
    // Removes the file; the next save() writes it.
    Status remove();

  protected:
    // Whether there is a file that DESCRIPTION accepts. Errors: EFBIG, EBADMSG (broken); of the disk.
    // HASH: of the text.
    [[nodiscard]] Result<bool> read_by(const StateDescription& description,
                                       std::optional<std::uint64_t>* hash = nullptr) const;
    Result<bool> load_by(const StateDescription& description);
    [[nodiscard]] Result<std::string> text_by(const StateDescription& description) const;
    Status save_text(const std::string& text);

  private:
    std::string path_;
    StateRules rules_;
    bool refused_ = false;                // load() found a file that must not be replaced
    std::optional<std::uint64_t> saved_;  // hash of the text that is in the file
};

template <class T>
class StateFile : public StateFileBase {
  public:
    using StateFileBase::StateFileBase;
    // What the file holds; nullopt: there is none.
    [[nodiscard]] Result<std::optional<T>> read() const {
        T out{};
        return to_optional(read_by(reader(out)), out);
    }
    // For the only writer. After an error, the file was set aside (the text says so) and save() may begin
    // anew, or it stays: one that must not be replaced, or that the disk did not give. Then save() fails.
    // OUT: for members that are not in the file.
    Result<std::optional<T>> load(T out = {}) { return to_optional(load_by(reader(out)), out); }
    // The file's text. Errors: EILSEQ for bytes that are not UTF-8; a number that could not be read again.
    [[nodiscard]] Result<std::string> text(const T& state) const {
        return text_by([&](JsonPlace& at) { describe(at, const_cast<T&>(state)); });
    }
    // Writes a temporary file, fsync, rename. Does nothing if the file holds this already.
    Status save(const T& state) {
        const auto out = text(state);
        return out ? save_text(*out) : tl::unexpected(out.error());
    }

  private:
    static StateDescription reader(T& out) {
        return [&out](JsonPlace& at) { describe(at, out); };
    }
    static Result<std::optional<T>> to_optional(const Result<bool>& found, T& out) {
        if (!found) return tl::unexpected(found.error());
        return *found ? std::optional(std::move(out)) : std::nullopt;
    }
};

// A file of numbered lines: JSON objects with "number", "version" and the members of a described struct. The
// last line is torn if a crash cut it off: it has no newline or is no JSON, and nobody sees it.
class AppendLogBase {
  public:
    // RULES.limit: above this, append() leaves only the newest lines, half as many bytes at most. A file that
    // is four times as large is broken.
    AppendLogBase(std::string path, StateRules rules) : path_(std::move(path)), rules_(rules) {}
    [[nodiscard]] const std::string& path() const { return path_; }

  protected:
    struct Text {
        std::uint64_t number;
        std::string line;
    };
    using Take = std::function<void(std::uint64_t number, JsonPlace&)>;
    [[nodiscard]] Status read_by(const Take& take) const;
    [[nodiscard]] Status load_by(const Take& take) const;
    [[nodiscard]] Result<Text> text_by(std::uint64_t number, const StateDescription& description) const;
    [[nodiscard]] Status append_texts(const std::vector<Text>& lines) const;

  private:
    std::string path_;
    StateRules rules_;
};

template <class T>
class AppendLog : public AppendLogBase {
  public:
    using AppendLogBase::AppendLogBase;
    struct Line {
        std::uint64_t number = 0;  // rises from line to line
        T value = {};
    };
    // All lines, oldest first. Errors: as StateFile::read(), with the number of the broken line.
    [[nodiscard]] Result<std::vector<Line>> read() const { return lines_by(&AppendLog::read_by); }
    // For the only writer. Ignores a torn line, which append() cuts off. A broken file is set aside, as by
    // StateFile::load().
    [[nodiscard]] Result<std::vector<Line>> load() const { return lines_by(&AppendLog::load_by); }
    // Adds those LINES whose numbers are above the last one in the file, and syncs them to disk: what failed
    // or ran twice can be repeated.
    // Of an object that no longer exists, a copy may do this: there is no other state than the file.
    [[nodiscard]] Status append(const std::vector<Line>& lines) const {
        std::vector<Text> texts;
        for (const Line& line : lines) {
            auto text =
                text_by(line.number, [&](JsonPlace& at) { describe(at, const_cast<T&>(line.value)); });
            if (!text) return tl::unexpected(text.error());
            texts.push_back(std::move(*text));
        }
        return append_texts(texts);
    }

  private:
    [[nodiscard]] Result<std::vector<Line>> lines_by(Status (AppendLogBase::*by)(const Take&) const) const {
        std::vector<Line> out;
        const Status done = (this->*by)([&out](std::uint64_t number, JsonPlace& at) {
            out.push_back({number, {}});
            describe(at, out.back().value);
        });
        if (!done) return tl::unexpected(done.error());
        return out;
    }
};

// Writes records: the ledger, verdicts, metrics. Their disk may answer late or never (it may be the device
// whose workqueue is compared), so the daemon never waits for it. The baseline must be stored before a write
// to /sys; it is in /run and does not use this class.
class RecordWriter {
  public:
    using Work = std::function<Status()>;
    using Done = std::function<void(const Status&)>;

    virtual ~RecordWriter() = default;

    // Runs WORK, then calls DONE with its result. NAME identifies the record, usually the path of a file.
    // Jobs run one at a time, in the order in which their names were first put. A newer job replaces a
    // waiting job of the same name; DONE of both is then called with the result of the newer one.
    //
    // WORK may run in another thread, so it must hold all its data by value. DONE is called by the thread
    // that called put(), possibly before put() returns. Objects that DONE refers to must outlive that call.
    virtual void put(const std::string& name, Work work, Done done) = 0;
};

}  // namespace wq
