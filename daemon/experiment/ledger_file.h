// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/journal.h"
#include "evidence/ledger.h"
#include "state/record_writer.h"

namespace wq {

// The ledger and its file. The file is read once, and replaced outside of the event loop. A kill loses what
// was learned since the last save: a minute of pairs at most.
class LedgerFile {
  public:
    LedgerFile(std::string path, RecordWriter& record, Log& log)
        : path_(std::move(path)), record_(record), log_(log) {}

    // For callers that only read. An absent file is an empty ledger. Error: with an errno if the file cannot
    // be read, without one if it cannot be parsed.
    static Result<Ledger> read(const std::string& path);
    // Renames a file that is too long or cannot be parsed to PATH.broken, and logs it. The ledger is empty
    // then. A file that cannot be read (an error of the disk) is never replaced.
    void load();

    [[nodiscard]] const Ledger& ledger() const { return ledger_; }
    Ledger& change() {
        changed_ = true;
        return ledger_;
    }
    // Starts to write the file, if the ledger changed or the last save failed. NOW: us.
    void save(std::uint64_t now);
    // Like save(), at most once a minute.
    void save_in_time(std::uint64_t now);
    // Why the ledger cannot be saved: it could not be read, the last save failed, or a save has not ended for
    // 2 s. "" if it can.
    [[nodiscard]] std::string why_not(std::uint64_t now) const;

  private:
    void saved(std::uint64_t number, const Status& done);

    std::string path_;
    RecordWriter& record_;
    Log& log_;
    Ledger ledger_;
    bool changed_ = false;
    bool unread_ = false;
    std::uint64_t saves_ = 0;                    // number of saves started
    std::uint64_t saved_at_ = 0;                 // time of the last one
    std::optional<std::uint64_t> saving_since_;  // start of the first one that has not ended
    std::string error_;                          // of the last one that has ended
};

}  // namespace wq
