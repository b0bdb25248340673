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
// those whose names start with a dot. Prints a line with the reason for each file or line that it refuses,
// and the notes of FleetMerge: at most 20 lines, and how many there are more.
FleetRead read_fleet(const std::vector<std::string>& files, const Shard& shard = {});

// `history --ledger`: prints the ledger of this host as lines for `fleet merge`: one for each counter of each
// comparison. Leaves out comparisons from a time when this machine had another number of CPUs, cores or LLCs,
// because they say nothing about machines of its kind. If two comparisons differ only in data that a line
// does not contain (the other counters, the CPUs of a partition), leaves out the older one.
int history_ledger(const Options& options);

// The name of a host in a fleet, from its machine id (32 hex digits): 32 hex digits that do not reveal the
// machine id. Equal to the output of `systemd-id128 machine-id --app-specific=SALT`: HMAC-SHA-256 of the
// salt, with the machine id as key, cut to a UUID of version 4.
std::string fleet_host_name(const std::string& machine_id);
inline constexpr const char* kFleetSalt = "7c1f3c8bd25f4c0c9a55e07a2a3f8d16";

}  // namespace wq::ctl
