// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet.h"

#include <fmt/format.h>
#include <systemd/sd-id128.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "ctl/machine.h"
#include "ctl/topology_source.h"
#include "evidence/ledger.h"
#include "machine/paths.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMostMessages = 20;  // that are printed

// FILES, with those in a directory instead of it.
std::vector<std::string> listed(const std::vector<std::string>& files, std::set<std::string>& errors) {
    std::vector<std::string> out;
    std::error_code none;
    for (const std::string& file : files) {
        if (file == "-" || !std::filesystem::is_directory(file, none)) {
            out.push_back(file == "-" ? "/dev/stdin" : file);
            continue;
        }
        const auto names = names_in(file);
        if (!names) errors.insert(names.error().text);
        for (const std::string& name : names.value_or(std::vector<std::string>{}))
            if (!name.starts_with('.') && !std::filesystem::is_directory(file + "/" + name, none))
                out.push_back(file + "/" + name);
    }
    return out;
}

// What can be read only once (a pipe) is merged in one round, however many rows that takes.
FleetMerge::Options options_for(const std::vector<std::string>& files, const Shard& shard) {
    FleetMerge::Options out{shard, ::time(nullptr)};
    std::error_code error;
    for (const std::string& file : files)
        if (std::filesystem::is_regular_file(file, error))
            out.bytes += std::filesystem::file_size(file, error);
        else if (std::filesystem::exists(file, error))
            out.most_rows = std::numeric_limits<std::size_t>::max();
    return out;
}

// Passes each line of FILE that is not blank to TAKE, with its number.
template <class Take>
Status read_lines(const std::string& file, Take take) {
    std::ifstream in;
    std::string buffer(1U << 20U, '\0');
    std::string line;
    in.rdbuf()->pubsetbuf(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    errno = 0;
    in.open(file, std::ios::binary);
    for (std::uint64_t number = 1; std::getline(in, line); number++)
        if (line.find_first_not_of(" \t\r") != std::string::npos) take(line, number);
    return in.eof() ? Status() : fail_errno(file, errno);
}

}  // namespace

FleetRead read_fleet(const std::vector<std::string>& given, const Shard& shard) {
    std::set<std::string> errors;
    std::size_t said = 0;
    const auto say = [&](const std::string& text) {
        if (said++ < kMostMessages) complain(text);
    };
    const auto files = listed(given, errors);
    FleetMerge merge(options_for(files, shard));
    FleetRead out;
    do {
        for (const std::string& file : files) {
            const Status read = read_lines(file, [&](std::string_view line, std::uint64_t number) {
                const std::string why = merge.take(line);
                for (const std::string& text : {merge.note(), why})
                    if (!text.empty()) say(fmt::format("{}:{}: {}", file, number, text));
                out.whole = out.whole && why.empty();
            });
            if (!read) errors.insert(read.error().text);
        }
    } while (merge.again());
    if (merge.covered() > 0)
        errors.insert(
            fmt::format("{} lines of hosts do not count: they are in a shard that a merged line covers",
                        merge.covered()));
    for (const std::string& error : errors) say(error);
    if (said > kMostMessages) complain(fmt::format("{} more messages like these", said - kMostMessages));
    out.whole = out.whole && errors.empty();
    out.entries = merge.entries();
    return out;
}

namespace {

// How many pools a partition in a ledger key has: "0-7|8-15" or, if many, "64 pods 0123456789abcdef".
std::uint64_t pools_of(const std::string& partition) {
    std::uint64_t count = 0;
    const auto read = std::from_chars(partition.data(), partition.data() + partition.size(), count);
    if (read.ec == std::errc{} && std::string_view(read.ptr).starts_with(" pods ")) return count;
    if (partition.empty()) return 0;
    return static_cast<std::uint64_t>(std::ranges::count(partition, '|')) + 1;
}

FleetLine line_of(const LedgerEntry& entry, std::size_t index, const FleetMachine& machine) {
    const LedgerKey& key = entry.key;
    const Comparison::Column& column = entry.columns[index];
    const ComparedCounter& counter = column.counter;
    FleetLine out;
    out.key = {machine,
               key.kernel,
               key.topology,
               key.scheduler,
               key.kind,
               key.reference,
               key.reference_origin,
               key.candidate,
               {pools_of(key.partitions[0]), pools_of(key.partitions[1])},
               key.candidate.ends_with(kStrictSuffix),
               counter.name,
               counter.guard,
               counter.tolerance,
               key.window};
    out.at = entry.updated;
    out.own = {entry.alarms,      column.better.count, column.better.logs,
               column.worse.logs, column.sum,          column.better.squares};
    if (index < entry.after.size()) out.own.after = entry.after[index];
    return out;
}

}  // namespace

std::string fleet_host_name(const std::string& machine_id) {
    sd_id128_t salt{}, own{}, name{};
    char text[SD_ID128_STRING_MAX];
    sd_id128_from_string(kFleetSalt, &salt);
    if (sd_id128_get_machine(&own) == 0 && machine_id == sd_id128_to_string(own, text) &&
        sd_id128_get_machine_app_specific(salt, &name) == 0)
        return sd_id128_to_string(name, text);
    return fmt::format("{:016x}{:016x}", hash_of(machine_id + kFleetSalt), hash_of(kFleetSalt + machine_id));
}

int history_ledger(const Options& options) {
    const auto ledger = StateFile<Ledger>(Paths{options.root}.ledger(), kLedgerRules).read();
    if (!ledger) return complain(ledger.error().text);
    if (!*ledger) return kOk;
    const auto topology = read_topology(options.topology, options.root);
    if (!topology) return complain(topology.error().text);
    const HostFacts facts = facts_of(options, *topology)();
    if (facts.machine_id.empty())
        return complain("/etc/machine-id has no machine id, so this host cannot be identified in a fleet");
    const FleetMachine machine = fleet_machine(facts, *topology);
    const std::string whole = fingerprint(*topology);
    const std::string counts = whole.substr(0, whole.rfind(", ") + 2);  // "24 CPUs, 12 cores, 1 LLC, "
    std::map<FleetKey, FleetLine> lines;
    for (const auto& [name, entry] : (*ledger)->entries())
        for (std::size_t i = 0; i < entry.columns.size(); i++) {
            if (!entry.key.topology.starts_with(counts)) continue;
            FleetLine line = line_of(entry, i, machine);
            line.host = fleet_host_name(facts.machine_id);
            FleetLine& kept = lines[line.key];
            if (line.at > kept.at) kept = std::move(line);
        }
    for (const auto& [key, line] : lines)
        if (line.at > 0) fmt::print("{}\n", text_of(line));
    return kOk;
}

}  // namespace wq::ctl
