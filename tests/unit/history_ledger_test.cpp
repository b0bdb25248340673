// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <systemd/sd-id128.h>

#include <sstream>

#include "ctl/fleet/fleet.h"
#include "ctl/topology_source.h"
#include "evidence/ledger.h"
#include "noise.h"
#include "run_command.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using test::File;
using testing::HasSubstr;

constexpr const char* kId = "0123456789abcdef0123456789abcdef";

// Compares with libsystemd's function. It always uses the id of this machine, so no other id can be compared.
TEST(FleetHostName, IsSystemdsApplicationSpecificId) {
    sd_id128_t machine{};
    sd_id128_t salt{};
    sd_id128_t wanted{};
    ASSERT_EQ(sd_id128_from_string(kFleetSalt, &salt), 0);
    if (sd_id128_get_machine(&machine) < 0 || sd_id128_get_machine_app_specific(salt, &wanted) < 0)
        GTEST_SKIP() << "this machine has no machine id";
    char text[SD_ID128_STRING_MAX];
    const std::string id = sd_id128_to_string(machine, text);
    EXPECT_EQ(fleet_host_name(id), sd_id128_to_string(wanted, text));
}

TEST(FleetHostName, IsNotTheMachineId) {
    EXPECT_THAT(fleet_host_name(kId), testing::MatchesRegex("[0-9a-f]{32}"));
    EXPECT_NE(fleet_host_name(kId), kId);
    EXPECT_NE(fleet_host_name(kId), fleet_host_name("1123456789abcdef0123456789abcdef"));
}

class HistoryLedger : public testing::Test {
  protected:
    HistoryLedger() { options_.root = tree_.root(); }

    LedgerEntry entry(const std::string& kind, std::int64_t updated = 1'700'000'000) {
        Comparison comparison(std::vector<ComparedCounter>{
            {.name = "latency"},
            {.name = "throughput", .higher_is_better = true, .tolerance = 0.01, .guard = true}});
        Random random(1);
        for (int i = 0; i < 20; i++)
            comparison.add({PairValues{1, std::exp(0.03 * random.normal() - 0.02)}, PairValues{1, 1}});
        LedgerEntry out;
        out.key = {"6.12 cpu smt cache numa system",
                   fingerprint(read_topology("live", tree_.root()).value()),
                   "",
                   kind,
                   "cache",
                   "smt strict",
                   "kernel",
                   {"0-7", "0-1|2-3|4-5|6-7"},
                   "latency 0",
                   "2000ms 500ms"};
        out.columns = comparison.columns();
        out.alarms = 2;
        out.updated = updated;
        return out;
    }
    void write(const Ledger& ledger) {
        ASSERT_TRUE(StateFile<Ledger>(tree_.path("var/lib/wq-tuned/ledger.json"), kLedgerRules).save(ledger));
    }

    struct Outcome : test::Ran {
        std::vector<FleetLine> lines = {};
    };
    [[nodiscard]] Outcome run() const {
        Outcome outcome{test::captured([&] { return history_ledger(options_); })};
        std::istringstream in(outcome.out);
        FleetLineReader reader(1'800'000'000);
        for (std::string line; std::getline(in, line);) {
            EXPECT_EQ(reader.read(line), "") << line;
            outcome.lines.push_back(reader.line());
        }
        return outcome;
    }

    test::TempTree tree_{
        test::cpu_tree(test::CpuTree{.cores = 4, .threads = 2}),
        File("proc/sys/kernel/osrelease", "6.12.57+deb13-amd64\n"),
        File("proc/sys/kernel/arch", "x86_64\n"),
        File("proc/sys/kernel/hostname", "secret\n"),
        File("etc/machine-id", std::string(kId) + "\n"),
        File("proc/cpuinfo", "vendor_id\t: GenuineIntel\nmodel name\t: A CPU\nflags\t: fpu\n")};
    Options options_;
};

TEST_F(HistoryLedger, HasALineForEachCounterOfEachComparison) {
    Ledger ledger;
    const LedgerEntry one = entry("kcryptd-#:#-#");
    ledger.put(one);
    ledger.put(entry("writeback"));
    write(ledger);
    const Outcome outcome = run();
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    ASSERT_THAT(outcome.lines, testing::SizeIs(4));
    const FleetLine& line = outcome.lines[0];
    EXPECT_EQ(line.host, fleet_host_name(kId));
    EXPECT_EQ(line.at, one.updated);
    EXPECT_EQ(line.key.machine, (FleetMachine{"x86_64", "GenuineIntel", "A CPU", 1, 4, 4}));
    EXPECT_EQ(line.key.kernel, one.key.kernel);
    EXPECT_EQ(line.key.topology, one.key.topology);
    EXPECT_EQ(line.key.kind, "kcryptd-#:#-#");
    EXPECT_EQ(line.key.candidate, "smt strict");
    EXPECT_TRUE(line.key.strict);
    EXPECT_EQ(line.key.partitions, (std::array<std::uint64_t, 2>{1, 4}));
    EXPECT_EQ(line.key.counter, "latency");
    EXPECT_FALSE(line.key.guard);
    EXPECT_EQ(line.own, (HostEvidence{2, 20, one.columns[0].better.logs, one.columns[0].worse.logs,
                                      one.columns[0].sum, one.columns[0].better.squares}));
    EXPECT_EQ(outcome.lines[1].key.counter, "throughput");
    EXPECT_TRUE(outcome.lines[1].key.guard);
    EXPECT_EQ(outcome.lines[1].key.tolerance, 0.01);
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("secret")));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr(kId)));
}

TEST_F(HistoryLedger, WhichComparisonsAreLines) {
    LedgerEntry anew = entry("anew");  // it replaces the earlier line in the fleet
    anew.columns = Comparison(std::vector<ComparedCounter>{{.name = "latency"}}).columns();
    LedgerEntry older = entry("apart", 1'600'000'000);  // a line has not what tells it from the newer one
    older.key.partitions = {"2-7", "2|3|4|5-7"};
    LedgerEntry other = entry("other");
    other.key.topology = "6 CPUs, 3 cores, 1 LLC, 0123456789abcdef";
    LedgerEntry large = entry("large");
    large.key.partitions = {"", "128 pods 0123456789abcdef"};
    Ledger ledger;
    for (const LedgerEntry& each : {anew, older, entry("apart"), other, large}) ledger.put(each);
    write(ledger);
    const auto lines = run().lines;
    ASSERT_THAT(lines, testing::SizeIs(5));
    EXPECT_EQ(lines[0].key.kind, "anew");
    EXPECT_EQ(lines[0].own.pairs, 0U);
    EXPECT_EQ(lines[1].key.kind, "apart");
    EXPECT_EQ(lines[1].at, 1'700'000'000);
    EXPECT_EQ(lines[3].key.kind, "large");
    EXPECT_EQ(lines[3].key.partitions, (std::array<std::uint64_t, 2>{0, 128}));
}

TEST_F(HistoryLedger, WithoutALedgerThereIsNothingAndABrokenOneIsNamed) {
    EXPECT_EQ(run().code, kOk);
    EXPECT_EQ(run().out, "");
    tree_.add(File("var/lib/wq-tuned/ledger.json", "{"));
    EXPECT_EQ(run().code, kFailure);
    EXPECT_THAT(run().err, HasSubstr("ledger.json: "));
}

TEST_F(HistoryLedger, WithoutAMachineIdItFails) {
    write(Ledger());
    tree_.write("etc/machine-id", "uninitialized\n");
    EXPECT_EQ(run().code, kFailure);
    EXPECT_THAT(run().err, HasSubstr("machine id, so this host cannot be identified in a fleet"));
}

}  // namespace
}  // namespace wq::ctl
