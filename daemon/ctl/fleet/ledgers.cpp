// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/ledgers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "base/file.h"
#include "ctl/fleet/hmac.h"
#include "ctl/machine.h"
#include "ctl/topology_source.h"
#include "evidence/ledger.h"
#include "machine/paths.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kBuffer = 1U << 20U;  // bytes
constexpr std::size_t kMostMessages = 20;   // that are printed

// A file with lines, which is read several times.
struct Source {
    std::string name;
    Fd copy;  // of input that can be read only once
};

struct Sources {
    std::vector<Source> files;
    std::uint64_t bytes = 0;
    std::set<std::string> errors;  // why some cannot be used
};

// A copy without a name, in $TMPDIR, else in /var/tmp: it may be larger than the memory.
Result<Fd> copied(int fd, std::uint64_t& bytes) {
    const char* folder = ::getenv("TMPDIR");
    std::string path =
        std::string(folder != nullptr && *folder != '\0' ? folder : "/var/tmp") + "/wq-fleet.XXXXXX";
    Fd out(::mkostemp(path.data(), O_CLOEXEC));
    if (!out) return fail_errno(path, errno);
    ::unlink(path.c_str());
    for (std::string buffer(kBuffer, '\0');;) {
        const ssize_t got = ::read(fd, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("reading", errno);
        if (got == 0) return out;
        const auto size = static_cast<std::size_t>(got);
        bytes += size;
        if (const auto done = write_all(out.get(), std::string_view(buffer).substr(0, size)); !done)
            return tl::unexpected(done.error());
    }
}

Status add(const std::string& file, Sources& out) {
    const Fd fd(file == "-" ? ::dup(STDIN_FILENO) : ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0) return fail_errno(file, errno);
    const std::string name = file == "-" ? "stdin" : file;
    if (file != "-" && S_ISREG(info.st_mode)) {
        out.bytes += static_cast<std::uint64_t>(info.st_size);
        out.files.push_back({name, Fd()});
        return {};
    }
    auto copy = copied(fd.get(), out.bytes);
    if (!copy) return tl::unexpected(copy.error().in(name));
    out.files.push_back({name, std::move(*copy)});
    return {};
}

bool is_directory(const std::string& file) {
    struct stat info {};
    return file != "-" && ::stat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Sources sources_of(const std::vector<std::string>& files) {
    Sources out;
    const auto add_or_tell = [&](const std::string& file) {
        if (const auto added = add(file, out); !added) out.errors.insert(added.error().text);
    };
    for (const std::string& file : files) {
        if (!is_directory(file)) {
            add_or_tell(file);
            continue;
        }
        const auto names = names_in(file);
        if (!names) out.errors.insert(names.error().text);
        for (const std::string& name : names.value_or(std::vector<std::string>{}))
            if (!name.starts_with('.') && !is_directory(file + "/" + name)) add_or_tell(file + "/" + name);
    }
    return out;
}

// Passes each line of SOURCE that is not blank to TAKE, with its number. Of a line of more than kMostLine
// bytes, the first kMostLine + 1.
template <class Take>
Status read_lines(const Source& source, Take take) {
    std::ifstream in;
    std::string buffer(kBuffer, '\0');
    std::string line(kMostLine + 2, '\0');
    in.rdbuf()->pubsetbuf(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    errno = 0;
    in.open(source.copy ? fmt::format("/proc/self/fd/{}", source.copy.get()) : source.name, std::ios::binary);
    for (std::uint64_t number = 1; in.good(); number++) {
        in.getline(line.data(), static_cast<std::streamsize>(line.size()));
        auto size = static_cast<std::size_t>(in.gcount());
        if (in.good()) size--;  // the newline
        if (in.fail() && !in.bad() && !in.eof()) {
            in.clear();
            in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
        }
        const std::string_view text(line.data(), size);
        if (text.find_first_not_of(" \t\r") != std::string_view::npos) take(text, number);
    }
    if (in.eof()) return {};
    return fail_errno(source.name + (in.is_open() ? ": reading" : ": opening"), errno);
}

}  // namespace

FleetRead read_fleet(const std::vector<std::string>& files, const Shard& shard) {
    FleetRead out;
    std::size_t said = 0;
    const auto say = [&](const std::string& text) {
        if (said++ < kMostMessages) complain(text);
    };
    Sources sources = sources_of(files);
    FleetMerge merge({shard, ::time(nullptr), sources.bytes});
    do {
        for (const Source& source : sources.files) {
            const Status read = read_lines(source, [&](std::string_view line, std::uint64_t number) {
                const std::string why = merge.take(line);
                for (const std::string& text : {merge.note(), why})
                    if (!text.empty()) say(fmt::format("{}:{}: {}", source.name, number, text));
                out.whole = out.whole && why.empty();
            });
            if (!read) sources.errors.insert(read.error().text);
        }
    } while (merge.again());
    for (const std::string& error : sources.errors) say(error);
    if (said > kMostMessages) complain(fmt::format("{} more messages like these", said - kMostMessages));
    out.whole = out.whole && sources.errors.empty();
    out.entries = merge.entries();
    return out;
}

namespace {

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
    Digest id = hmac_sha256(bytes_of(machine_id), bytes_of(kFleetSalt));
    id[6] = static_cast<std::uint8_t>((id[6] & 0x0fU) | 0x40U);
    id[8] = static_cast<std::uint8_t>((id[8] & 0x3fU) | 0x80U);
    std::string out;
    for (std::size_t i = 0; i < 16; i++) out += fmt::format("{:02x}", id[i]);
    return out;
}

int history_ledger(const Options& options) {
    const std::string path = Paths{options.root}.of_user("/var/lib/wq-tuned/ledger.json");
    const auto ledger = StateFile<Ledger>(path, kLedgerRules).read();
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
