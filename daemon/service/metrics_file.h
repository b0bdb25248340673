// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/journal.h"
#include "machine/paths.h"
#include "state/state_file.h"

namespace wq {

// The file that node_exporter's textfile collector reads, only while a daemon runs. Its path is recorded in
// the runtime directory, so that the file can be found after a crash, or after the policy named another path.
// An error is logged once, until it changes. WRITER does all file operations but the record's: a disk may be
// slow.
class MetricsFile {
  public:
    MetricsFile(const Paths& paths, Log& log, RecordWriter& writer)
        : paths_(paths), log_(log), writer_(writer) {}

    // Takes over the file of an earlier daemon.
    void recall();
    // Uses PATH from now on, "" for no file. Removes the file at the previous path.
    void use(const std::string& path);
    [[nodiscard]] bool is_wanted() const { return !path_.empty(); }
    // Writes TEXT to the file, asynchronously, if it has another one.
    void show(const std::string& text);
    // For the daemon's end: removes the file, and then its record, asynchronously.
    void remove();

  private:
    void write();
    void say(const std::string& text);

    Paths paths_;
    Log& log_;
    RecordWriter& writer_;
    std::string path_;                 // as in the policy
    std::optional<std::string> next_;  // text that is still to be written
    bool writing_ = false;             // a text is being written
    std::string said_;
};

}  // namespace wq
