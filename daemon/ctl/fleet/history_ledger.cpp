// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/history_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/file.h"
#include "base/hash.h"
#include "ctl/fleet/fleet_show.h"
#include "ctl/machine.h"
#include "machine/hwloc_topology.h"
#include "machine/paths.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMaxLedger = 64U << 20U;  // bytes

std::string bytes_of(const std::string& hex) {
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        unsigned byte = 0;
        std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
        out += static_cast<char>(byte);
    }
    return out;
}

// How many pools a partition in a ledger key has: "0-7|8-15" or, if many, "64 pods 0123456789abcdef".
std::uint64_t pools_of(const std::string& partition) {
    std::uint64_t count = 0;
    const auto read = std::from_chars(partition.data(), partition.data() + partition.size(), count);
    if (read.ec == std::errc{} && std::string_view(read.ptr).starts_with(" pods ")) return count;
    if (partition.empty()) return 0;
    return static_cast<std::uint64_t>(std::ranges::count(partition, '|')) + 1;
}

FleetKey key_of(const LedgerKey& key, const FleetMachine& machine, const ComparedCounter& counter) {
    FleetKey out;
    out.machine = machine;
    out.kernel = key.kernel;
    out.topology = key.topology;
    out.scheduler = key.scheduler;
    out.kind = key.kind;
    out.reference = key.reference;
    out.reference_origin = key.reference_origin;
    out.candidate = key.candidate;
    out.partitions = {pools_of(key.partitions[0]), pools_of(key.partitions[1])};
    out.strict = key.candidate.ends_with(kStrictSuffix);
    out.counter = counter.name;
    out.guard = counter.guard;
    out.tolerance = counter.tolerance;
    out.window = key.window;
    return out;
}

HostEvidence evidence_of(const Comparison::Column& column, unsigned alarms) {
    return {alarms,     column.better.count,  column.better.logs, column.worse.logs,
            column.sum, column.better.squares};
}

}  // namespace

std::string fleet_host_name(const std::string& machine_id) {
    Digest id = hmac_sha256(bytes_of(machine_id), bytes_of(kFleetSalt));
    id[6] = static_cast<std::uint8_t>((id[6] & 0x0fU) | 0x40U);
    id[8] = static_cast<std::uint8_t>((id[8] & 0x3fU) | 0x80U);
    std::string out;
    for (std::size_t i = 0; i < 16; i++) out += fmt::format("{:02x}", id[i]);
    return out;
}

LedgerHost ledger_host(const HostFacts& facts, const Topology& topology) {
    LedgerHost out;
    out.name = fleet_host_name(facts.machine_id);
    out.machine = fleet_machine(facts, topology);
    const std::string whole = fingerprint(topology);
    out.topology = whole.substr(0, whole.rfind(", ") + 2);
    return out;
}

std::vector<FleetLine> ledger_lines(const Ledger& ledger, const LedgerHost& host) {
    std::map<FleetKey, FleetLine> lines;
    for (const auto& [text, entry] : ledger.entries()) {
        if (!entry.key.topology.starts_with(host.topology)) continue;
        for (const Comparison::Column& column : entry.columns) {
            FleetLine line;
            line.key = key_of(entry.key, host.machine, column.counter);
            line.host = host.name;
            line.at = entry.updated;
            line.own = evidence_of(column, entry.alarms);
            FleetLine& kept = lines[line.key];
            if (line.at > kept.at) kept = std::move(line);
        }
    }
    std::vector<FleetLine> out;
    for (auto& [key, line] : lines)
        if (line.at > 0) out.push_back(std::move(line));
    return out;
}

int history_ledger(const Options& options) {
    const std::string path = Paths{options.root}.of_user("/var/lib/wq-tuned/ledger.json");
    const auto text = read_if_there(path, kMaxLedger);
    if (!text) return complain(text.error().text);
    if (!*text) return kOk;
    const auto ledger = Ledger::from_text(**text);
    if (!ledger) return complain(path + ": " + ledger.error().text);
    const auto topology = read_topology(options.topology, options.root);
    if (!topology) return complain(topology.error().text);
    const HostFacts facts = facts_of(options, *topology)();
    if (facts.machine_id.empty())
        return complain("/etc/machine-id has no machine id, so this host cannot be identified in a fleet");
    for (const FleetLine& line : ledger_lines(*ledger, ledger_host(facts, *topology)))
        fmt::print("{}\n", text_of(line));
    return kOk;
}

}  // namespace wq::ctl
