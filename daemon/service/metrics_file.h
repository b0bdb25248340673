// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/journal.h"
#include "base/record_writer.h"
#include "kernel/paths.h"

namespace wq {

// The file that node_exporter's textfile collector reads. It says what is so only while a daemon runs, and
// goes with it: its path is on record in the runtime directory, so that it is found after a crash, and after
// the policy named another one. What goes wrong is said once, until it is something else, and keeps nothing
// else from its work; nor does a disk that is slow: all but the record is done by the WRITER.
class MetricsFile {
  public:
    MetricsFile(const Paths& paths, Log& log, RecordWriter& writer)
        : paths_(paths), log_(log), writer_(writer) {}

    // Takes up the file of the daemon before, if it left one.
    void recall();
    // From now on it is PATH, "" for none. Another one is removed.
    void use(const std::string& path);
    [[nodiscard]] bool is_wanted() const { return !path_.empty(); }
    // Makes the file hold TEXT, soon; where it does already, nothing is written.
    void show(const std::string& text);
    // The daemon ends: no file, soon, and then no record of one.
    void remove();

  private:
    void write();
    void shown(std::uint64_t hash, const Status& done);
    void removed(const Status& done);
    void say(const std::string& text);

    Paths paths_;
    Log& log_;
    RecordWriter& writer_;
    std::string path_;                    // as the policy has it
    std::optional<std::uint64_t> shown_;  // hash of what the file holds
    std::optional<std::string> next_;     // text that is still to be written
    bool writing_ = false;                // a text is being written
    std::string said_;
};

}  // namespace wq
