// SPDX-License-Identifier: LGPL-2.1-or-later
// The cost of merging the ledgers of a fleet: `fleet_scale HOSTS ENTRIES [REPEATS]` writes a ledger of
// ENTRIES lines for each of HOSTS hosts of 40 kinds to files in $TMPDIR (default /var/tmp), merges them as
// `wq-tunectl fleet merge` does, and prints the number of lines, the CPU seconds per million lines, and the
// maximum resident memory. Each file is written REPEATS times, the last time as a newer export of the same
// hosts.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "ctl/fleet/fleet.h"

namespace {

constexpr unsigned kKinds = 40;
constexpr unsigned kHostsPerFile = 1000;

wq::FleetLine line_of(unsigned host, unsigned entry, std::mt19937_64& random) {
    std::normal_distribution<double> normal(0, 2);
    const unsigned kind = host % kKinds;
    wq::FleetLine line;
    line.key.machine = {"x86_64", "AuthenticAMD", fmt::format("AMD EPYC 9{:03} 96-Core Processor", kind),
                        2,        96 + kind,      8};
    line.key.kernel = "6.12 cpu smt cache numa system";
    line.key.topology = fmt::format("192 CPUs, 96 cores, 12 LLCs, {:016x}", kind * 0x9e3779b97f4a7c15U);
    line.key.kind = fmt::format("kcryptd-#:#-{}", entry / 4);
    line.key.reference = "cache";
    line.key.reference_origin = "kernel";
    line.key.candidate = entry % 2 == 0 ? "smt" : "cpu";
    line.key.partitions = {12, 96};
    line.key.counter = entry % 4 < 2 ? "latency" : "throughput";
    line.key.guard = entry % 4 >= 2;
    line.key.window = "2000ms 500ms";
    line.host = fmt::format("{:016x}{:016x}", host * 0xd6e8feb86659fd93U, host);
    line.at = 1'700'000'000 + entry;
    line.own.pairs = 64 + entry;
    for (double& log : line.own.better) log = normal(random);
    for (double& log : line.own.worse) log = normal(random);
    line.own.sum = normal(random);
    line.own.squares = 1 + line.own.sum * line.own.sum;
    return line;
}

std::uint64_t write_ledgers(const std::string& folder, unsigned hosts, unsigned entries, unsigned repeats) {
    std::uint64_t lines = 0;
    for (unsigned first = 0; first < hosts; first += kHostsPerFile)
        for (unsigned repeat = 0; repeat < repeats; repeat++) {
            std::mt19937_64 random(first);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
            std::ofstream out(fmt::format("{}/{:08}-{}", folder, first, repeat));
            for (unsigned host = first; host < std::min(hosts, first + kHostsPerFile); host++)
                for (unsigned entry = 0; entry < entries; entry++, lines++) {
                    wq::FleetLine line = line_of(host, entry, random);
                    if (repeat > 0 && repeat + 1 == repeats) line.at += 86'400;
                    out << text_of(line) << '\n';
                }
        }
    return lines;
}

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Merges in a process of its own, so that the figures contain only the merge.
rusage merge(const std::string& folder) {
    const pid_t child = ::fork();
    if (child == 0) {
        const auto read = wq::ctl::read_fleet({folder});
        fmt::print("{} entries\n", read.entries.size());
        std::fflush(stdout);
        ::_exit(read.whole ? 0 : 1);
    }
    int status = 0;
    rusage used{};
    if (::wait4(child, &status, 0, &used) != child || status != 0) std::exit(1);
    return used;
}

}  // namespace

int main(int argc, char** argv) {
    const auto number = [&](int i, unsigned other) {
        return argc > i ? static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10)) : other;
    };
    const char* base = std::getenv("TMPDIR");
    std::string folder = std::string(base != nullptr ? base : "/var/tmp") + "/wq-fleet-scale.XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) return 1;
    const unsigned hosts = number(1, 10'000);
    const std::uint64_t lines = write_ledgers(folder, hosts, number(2, 60), number(3, 1));
    const rusage used = merge(folder);
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder)) bytes += file.file_size();
    std::filesystem::remove_all(folder);
    fmt::print(
        "{} hosts, {} lines of {} bytes: {:.2f} s CPU, {:.2f} s per million lines; {:.0f} MiB at most\n",
        hosts, lines, bytes / lines, seconds(used.ru_utime) + seconds(used.ru_stime),
        (seconds(used.ru_utime) + seconds(used.ru_stime)) * 1e6 / static_cast<double>(lines),
        static_cast<double>(used.ru_maxrss) / 1024);
}
