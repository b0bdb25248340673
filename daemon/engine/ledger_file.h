// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/journal.h"
#include "base/record_writer.h"
#include "evidence/ledger.h"

namespace wq {

// The ledger with its file: read once, and written by replacement, off the loop. What a kill costs is what
// was learned since the last save: a minute of pairs at most.
class LedgerFile {
  public:
    LedgerFile(std::string path, RecordWriter& record, Log& log)
        : path_(std::move(path)), record_(record), log_(log) {}

    // For who only reads. An absent file is an empty ledger.
    static Result<Ledger> read(const std::string& path);
    // A file that cannot be understood is set aside as PATH.broken, and said; the ledger is empty then.
    void load();

    [[nodiscard]] const Ledger& ledger() const { return ledger_; }
    Ledger& change() {
        changed_ = true;
        return ledger_;
    }
    // Asks for the file to be written, where there is news. NOW: us.
    void save(std::uint64_t now);
    // As save(), once a minute.
    void save_in_time(std::uint64_t now);
    // Why what is learned cannot be kept: the last save failed, or has not ended for 2 s. "" if it can.
    [[nodiscard]] std::string why_not(std::uint64_t now) const;

  private:
    void saved(std::uint64_t number, const Status& done);

    std::string path_;
    RecordWriter& record_;
    Log& log_;
    Ledger ledger_;
    bool changed_ = false;
    std::uint64_t saves_ = 0;                    // asked for
    std::uint64_t saved_at_ = 0;                 // when the last one was
    std::optional<std::uint64_t> saving_since_;  // the first that has not ended
    std::string error_;                          // of the last that has
};

}  // namespace wq
