// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "ctl/options.h"
#include "evidence/fleet_line.h"
#include "evidence/ledger.h"
#include "machine/host_facts.h"
#include "machine/topology.h"

namespace wq::ctl {

// `history --ledger`: prints the ledger of this host as lines for `fleet merge`.
int history_ledger(const Options& options);

// The name of a host in a fleet, from its machine id (32 hex digits): 32 hex digits that do not reveal the
// machine id. Equal to the output of `systemd-id128 machine-id --app-specific=SALT`: HMAC-SHA-256 of the
// salt, with the machine id as key, cut to a UUID of version 4.
std::string fleet_host_name(const std::string& machine_id);
inline constexpr const char* kFleetSalt = "7c1f3c8bd25f4c0c9a55e07a2a3f8d16";

struct LedgerHost {
    std::string name;
    FleetMachine machine;
    std::string topology;  // "24 CPUs, 12 cores, 1 LLC": the start of its fingerprint
};
LedgerHost ledger_host(const HostFacts& facts, const Topology& topology);

// Returns a line for each counter of each comparison. Leaves out comparisons from a time when this machine
// had another number of CPUs, cores or LLCs, because they say nothing about machines of its kind. If two
// comparisons differ only in data that a line does not contain (the other counters, the CPUs of a partition),
// leaves out the older one.
std::vector<FleetLine> ledger_lines(const Ledger& ledger, const LedgerHost& host);

}  // namespace wq::ctl
