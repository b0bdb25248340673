// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "ctl/fleet/fleet_merge.h"
#include "ctl/options.h"

namespace wq::ctl {

struct FleetRead {
    std::vector<FleetEntry> entries;
    bool whole = true;  // no file and no line was refused
};

// Merges the lines of FILES that are in SHARD: "-" is stdin; a directory stands for the files in it, without
// those whose names start with a dot. Prints why it refuses a file or a line, and the notes of FleetMerge.
FleetRead read_fleet(const std::vector<std::string>& files, const Shard& shard = {});

// `history --ledger`: prints the ledger of this host as lines for `fleet merge`, one for each counter of each
// comparison, without those from a time when this machine had another number of CPUs, cores or LLCs. Of two
// that differ only in what a line does not contain (the CPUs of a partition), the newer one.
int history_ledger(const Options& options);

// The name of a host in a fleet, from its machine id (32 hex digits), which it does not reveal: what
// `systemd-id128 machine-id --app-specific=SALT` prints.
std::string fleet_host_name(const std::string& machine_id);
inline constexpr const char* kFleetSalt = "7c1f3c8bd25f4c0c9a55e07a2a3f8d16";

}  // namespace wq::ctl
