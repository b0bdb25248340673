// SPDX-License-Identifier: LGPL-2.1-or-later
#include "counters/counter_table.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace wq {
namespace {

constexpr std::array kKinds = {
    CounterKind{"latency", "ns", false, 0, [](const WorkCount& c, double) { return c.latency; }},
    CounterKind{"tail", "ns", false, 0, [](const WorkCount& c, double) { return c.tail; }, &Wanted::tails},
    CounterKind{"exec", "ns", false, 0, [](const WorkCount& c, double) { return c.exec; }},
    // An uncontended lock may have cost 0, which has no logarithm. An unknown value stays NaN.
    CounterKind{"lock", "ns an item", false, 100,
                [](const WorkCount& c, double) { return c.lock < 1 ? 1.0 : c.lock; }},
    CounterKind{"enqueue", "ns", false, 0, [](const WorkCount& c, double) { return c.enqueue; },
                &Wanted::enqueue},
    CounterKind{"items", "items/s", true, 0,
                [](const WorkCount& c, double seconds) { return static_cast<double>(c.items) / seconds; }},
    // An unknown value stays NaN.
    CounterKind{"throughput", "items/s", true, 0,
                [](const WorkCount& c, double) { return std::max(c.throughput, kZeroReading); }},
    CounterKind{"cpu", "ns an item", false, 0, [](const WorkCount& c, double) { return c.cpu; }},
    CounterKind{"workers", "kworkers", false, 0,
                [](const WorkCount& c, double) { return c.workers > 0 ? c.workers : WorkCount::kUnknown; },
                nullptr, true},
    CounterKind{.name = kOthers, .unit = "", .guard_only = true},
    // cpu.full is always 0 (kernel/sched/psi.c, psi_show()).
    CounterKind{"psi:cpu.some", "of the time", false, 0.01},
    CounterKind{"psi:io.some", "of the time", false, 0.01},
    CounterKind{"psi:io.full", "of the time", false, 0.01},
    CounterKind{"psi:memory.some", "of the time", false, 0.01},
    CounterKind{"psi:memory.full", "of the time", false, 0.01},
    CounterKind{"diskstats:DEV.rkB", "kB/s", true, 100},
    CounterKind{"diskstats:DEV.wkB", "kB/s", true, 100},
    CounterKind{"file:/PATH", "", false, 0},
};

constexpr std::size_t kMaxNumberFile = 4096;    // bytes
constexpr std::size_t kMaxDiskstats = 4 << 20;  // enough for tens of thousands of disks
constexpr std::size_t kMaxDevice = 31;          // DISK_NAME_LEN without its NUL
constexpr double kSectorsPerKb = 2;             // sectors of 512 bytes, whatever the disk's sector size is
constexpr std::size_t kSectorsRead = 5;         // index of a field in a line of /proc/diskstats
constexpr std::size_t kSectorsWritten = 9;
constexpr double kMicroseconds = 1e6;

struct Name {
    enum class Kind { pressure, disk, file };
    Kind kind;
    std::string subject;  // cpu, io or memory; a disk; a path
    std::string part;     // some or full; rkB or wkB; empty
};

std::optional<Name> disk_name(const std::string& rest) {
    const auto dot = rest.rfind('.');
    const bool is_plain = std::ranges::all_of(rest, [](char c) { return c > ' ' && c < '\x7f'; });
    if (dot == std::string::npos || dot == 0 || dot > kMaxDevice || !is_plain) return std::nullopt;
    const std::string part = rest.substr(dot + 1);
    if (part != "rkB" && part != "wkB") return std::nullopt;
    return Name{Name::Kind::disk, rest.substr(0, dot), part};
}

Result<Name> take_apart(const std::string& name) {
    const auto colon = name.find(':');
    const std::string kind = colon == std::string::npos ? "" : name.substr(0, colon);
    const std::string rest = name.substr(colon + 1);
    if (kind == "psi" && find_counter(name) != nullptr)
        return Name{Name::Kind::pressure, rest.substr(0, rest.find('.')), rest.substr(rest.find('.') + 1)};
    if (const auto disk = disk_name(rest); disk && kind == "diskstats") return *disk;
    const bool path = rest.starts_with('/') && rest.size() < PATH_MAX;
    const auto is_control = [](unsigned char byte) { return byte < ' ' || byte == 0x7f; };
    if (kind == "file" && path && std::ranges::none_of(rest, is_control))
        return Name{Name::Kind::file, rest, ""};
    return fail("no counter can be called '" + name + "'");
}

// Parses all of TEXT as a finite number of at least 0.
template <class T>
std::optional<T> number_in(std::string_view text) {
    const auto value = number_of<T>(text);
    if (!value || !std::isfinite(static_cast<double>(*value)) || *value < T{}) return std::nullopt;
    return value;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> out;
    for (std::size_t at = 0; (at = text.find_first_not_of(separators, at)) != std::string_view::npos;) {
        const auto end = std::min(text.find_first_of(separators, at), text.size());
        out.push_back(text.substr(at, end - at));
        at = end;
    }
    return out;
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=123456"
Result<double> read_pressure(const std::string& path, std::string_view part) {
    const auto text = read_file(path);
    if (!text) return tl::unexpected(text.error());
    for (std::string_view line : split(*text, "\n")) {
        const auto words = split(line, " ");
        if (words.size() < 2 || words.front() != part || !words.back().starts_with("total=")) continue;
        const auto total = number_in<std::uint64_t>(words.back().substr(6));
        if (total) return static_cast<double>(*total);
    }
    return fail(path + ": no total of '" + std::string(part) + "'");
}

// "254 0 vda 5 0 SECTORS-READ 3 7 0 SECTORS-WRITTEN ..."
Result<double> read_disk(const std::string& path, std::string_view disk, std::size_t field) {
    const auto text = read_file(path, kMaxDiskstats);
    if (!text) return tl::unexpected(text.error());
    for (std::string_view line : split(*text, "\n")) {
        const auto words = split(line, " ");
        if (words.size() <= field || words[2] != disk) continue;
        if (const auto sectors = number_in<std::uint64_t>(words[field]))
            return static_cast<double>(*sectors) / kSectorsPerKb;
    }
    return fail(path + ": no device '" + std::string(disk) + "'", ENODEV);
}

// A user other than root may have created it. Checks the type before opening it, because opening a device can
// have effects (a watchdog starts), and then opens what was checked.
Result<std::string> read_foreign_file(const std::string& path) {
    const Fd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat st {};
    if (!place || ::fstat(place.get(), &st) != 0) return fail_errno(path, errno);
    if (!S_ISREG(st.st_mode)) return fail(path + ": not a regular file");
    return read_file("/proc/self/fd/" + std::to_string(place.get()), kMaxNumberFile)
        .map_error([&](const Error& e) { return fail_errno(path, e.code).value(); });
}

Result<double> read_number_file(const std::string& path) {
    const auto text = read_foreign_file(path);
    if (!text) return tl::unexpected(text.error());
    const auto words = split(*text, " \t\r\n\v\f");
    const auto number = words.size() == 1 ? number_in<double>(words[0]) : std::nullopt;
    if (!number) return fail(path + ": must contain exactly one finite number of at least 0");
    return *number;
}

}  // namespace

std::span<const CounterKind> counter_kinds() {
    return kKinds;
}

const CounterKind* find_counter(std::string_view name) {
    std::string pattern(name);
    if (!name.starts_with("psi:"))  // of which take_apart() asks this function
        if (const auto counter = take_apart(pattern))
            pattern = counter->kind == Name::Kind::file ? "file:/PATH" : "diskstats:DEV." + counter->part;
    const auto row = std::ranges::find(kKinds, pattern, &CounterKind::name);
    return row == kKinds.end() ? nullptr : &*row;
}

bool counter_higher_is_better(std::string_view name) {
    const CounterKind* kind = find_counter(name);
    return kind != nullptr && kind->higher_is_better;
}

bool is_work_counter(std::string_view name) {
    const CounterKind* kind = find_counter(name);
    return kind != nullptr && kind->of_work != nullptr;
}

unsigned sampled_every(double items) {
    constexpr double kMost = 65535;
    if (!(items >= kTimed)) return 1;  // NaN too
    return static_cast<unsigned>(std::min(std::round(items / kTimed), kMost));
}

Result<double> read_machine_counter(const Paths& paths, const std::string& name) {
    const auto counter = take_apart(name);
    if (!counter) return tl::unexpected(counter.error());
    switch (counter->kind) {
        case Name::Kind::pressure:
            return read_pressure(paths.pressure(counter->subject), counter->part);
        case Name::Kind::disk:
            return read_disk(paths.proc() + "/diskstats", counter->subject,
                             counter->part == "rkB" ? kSectorsRead : kSectorsWritten);
        case Name::Kind::file:
            break;
    }
    return read_number_file(paths.of_user(counter->subject));
}

Result<double> value_of_window(const std::string& name, double before, double after, double seconds) {
    const auto counter = take_apart(name);
    if (!counter) return tl::unexpected(counter.error());
    if (counter->kind == Name::Kind::file) return std::max(after, kZeroReading);
    if (after < before) return fail(name + " went backwards");
    if (!(seconds > 0)) return fail(name + ": a zero-length window");
    const double rate = std::max(after - before, 1.0) / seconds;
    return counter->kind == Name::Kind::pressure ? rate / kMicroseconds : rate;
}

}  // namespace wq
