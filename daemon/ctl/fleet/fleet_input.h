// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "evidence/fleet_merge.h"

namespace wq::ctl {

// The lines of files. They can be read more than once.
class FleetInput {
  public:
    // FILES: "-" is stdin; a directory stands for the files in it, sorted by name, without those whose names
    // start with a dot. Stdin, and a file that is not a regular one, are copied to an unlinked file in
    // $TMPDIR, else in /var/tmp. A file that cannot be used is skipped; the reason is added to ERRORS.
    FleetInput(const std::vector<std::string>& files, std::vector<std::string>& errors);

    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    // Calls TAKE with each line that is not blank and its place, "FILE:LINE". A file that cannot be read to
    // its end is added to ERRORS. A line that is longer than kMostLine bytes may be cut to kMostLine + 1.
    using Place = std::function<std::string()>;
    void each_line(const std::function<void(std::string_view line, const Place& place)>& take,
                   std::vector<std::string>& errors) const;

  private:
    struct Source {
        std::string name;
        Fd copy;  // of input that can be read only once
    };
    Status add(const std::string& file);
    Status add_copy(const std::string& name, int fd);
    Status add_directory(const std::string& path, std::vector<std::string>& errors);

    std::vector<Source> sources_;
    std::uint64_t bytes_ = 0;
};

struct FleetRead {
    std::vector<FleetEntry> entries;
    bool whole = true;  // no file and no line was refused
};

// Merges the lines of FILES that are in SHARD. Prints a line with the reason for each file or line that it
// refuses, and the notes of FleetMerge: at most 20 lines, and how many there are more.
FleetRead read_fleet(const std::vector<std::string>& files, const Shard& shard = {});

}  // namespace wq::ctl
