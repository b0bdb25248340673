// SPDX-License-Identifier: LGPL-2.1-or-later
#include "counters/counter_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cerrno>

#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::File;
using test::TempTree;
using testing::HasSubstr;

TempTree machine() {
    return TempTree{
        Dir("proc/pressure", {File("cpu",
                                   "some avg10=1.00 avg60=0.50 avg300=0.10 total=1234567\n"
                                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
                              File("io",
                                   "some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551615\n"
                                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=42\n"),
                              File("memory",
                                   "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
                                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")}),
        File("proc/diskstats",
             " 254       0 vda 11 1 1001 5 22 2 3000 6 0 70 80 0 0 0 0 9 9\n"
             " 254       1 vda1 11 1 10 5 22 2 30 6 0 70 80 0 0 0 0 9 9\n"
             " 104       0 cciss/c0d0.x 11 1 2 5 22 2 4 6 0 70 80\n"
             "   8       0 sda 1 2\n")};
}

// The value of a file: counter whose file holds TEXT.
Result<double> number(const std::string& text) {
    const TempTree tree{File("run/app/p99", text)};
    return read_machine_counter({tree.root()}, "file:/run/app/p99");
}

TEST(MachineCounter, NamesAreCheckedInForm) {
    for (const char* good : {"psi:cpu.some", "psi:io.some", "psi:io.full", "psi:memory.some",
                             "psi:memory.full", "diskstats:vda.rkB", "diskstats:nvme0n1p1.wkB",
                             "diskstats:cciss/c0d0.wkB", "file:/x", "file:/run/app/p99 of it: é"})
        EXPECT_NE(find_counter(good), nullptr) << good;
    for (const char* bad : {"",
                            "psi",
                            "psi:",
                            "psi:cpu",
                            "psi:cpu.full",
                            "psi:cpu.some ",
                            "psi:net.some",
                            "PSI:cpu.some",
                            "psi:../cpu.some",
                            "diskstats:",
                            "diskstats:vda",
                            "diskstats:.rkB",
                            "diskstats:vda.",
                            "diskstats:vda.kB",
                            "diskstats:v da.rkB",
                            "diskstats:vda\n.rkB",
                            "diskstats:abcdefghijklmnopqrstuvwxyz012345.rkB",
                            "file:",
                            "file:x",
                            "file:./x",
                            "file:~/x",
                            "file:/x\ny",
                            "file:/x\x7f",
                            "files:/x"})
        EXPECT_EQ(find_counter(bad), nullptr) << bad;
    EXPECT_EQ(find_counter("file:/" + std::string(4096, 'x')), nullptr);
    EXPECT_EQ(find_counter(std::string("file:/x\0y", 9)), nullptr);
}

TEST(MachineCounter, IsReadFromItsFile) {
    const TempTree tree = machine();
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, double>>{{"psi:cpu.some", 1234567},
                                                     {"psi:io.some", 18446744073709551615.0},
                                                     {"psi:io.full", 42},
                                                     {"psi:memory.some", 7},
                                                     {"psi:memory.full", 0},
                                                     {"diskstats:vda.rkB", 500.5},
                                                     {"diskstats:vda.wkB", 1500},
                                                     {"diskstats:vda1.rkB", 5},
                                                     {"diskstats:cciss/c0d0.x.wkB", 2}}) {
        EXPECT_EQ(read_machine_counter({tree.root()}, name), value) << name;
        EXPECT_EQ(find_counter(name)->higher_is_better, std::string_view(name).starts_with("diskstats"));
    }
    EXPECT_FALSE(find_counter("file:/diskstats:vda.rkB")->higher_is_better);
    for (const char* gone :
         {"diskstats:vdb.rkB", "diskstats:vd.rkB", "diskstats:sda.wkB", "diskstats:254.rkB"}) {
        const auto value = read_machine_counter({tree.root()}, gone);
        ASSERT_FALSE(value) << gone;
        EXPECT_THAT(value.error().text, HasSubstr("/proc/diskstats: no device '")) << gone;
    }
    EXPECT_FALSE(read_machine_counter({tree.root()}, "latency"));
}

TEST(MachineCounter, PressureInAnotherFormIsAnErrorThatNamesTheFile) {
    for (const char* text : {"", "\n", "full avg10=0.00 total=3\n", "something total=3\n", "some total=\n",
                             "some total=-1\n", "some total=3x\n", "some total=1.5\n", "some 3\n",
                             "total=3\n", "some total=18446744073709551616\n"}) {
        const TempTree tree{File("proc/pressure/io", text)};
        const auto value = read_machine_counter({tree.root()}, "psi:io.some");
        ASSERT_FALSE(value) << text;
        EXPECT_THAT(value.error().text, HasSubstr("/proc/pressure/io: no total of 'some'")) << text;
    }
    const TempTree none;
    EXPECT_EQ(read_machine_counter({none.root()}, "psi:io.some").error().code, ENOENT);
}

TEST(MachineCounter, AMachineMayHaveThousandsOfDisks) {
    std::string text;
    for (int i = 0; i < 10000; i++)
        text +=
            "   8       0 sd" + std::to_string(i) + " 1000000 0 100000000 0 1 2 6 4 5 6 7 8 9 10 11 12 13\n";
    const TempTree tree{File("proc/diskstats", text)};
    EXPECT_EQ(read_machine_counter({tree.root()}, "diskstats:sd9999.wkB"), 3);
}

TEST(MachineCounter, AFileHoldsOneNumber) {
    EXPECT_EQ(number("0"), 0);
    EXPECT_EQ(number("17\n"), 17);
    EXPECT_EQ(number(" \t1.5e3\r\n\n"), 1500);
    EXPECT_EQ(number("18446744073709551617\n"), 18446744073709551617.0);
    EXPECT_EQ(number(fmt::format("{:>4001}", 3)), 3);
}

TEST(MachineCounter, AFileWithAnythingElseIsAnErrorThatDoesNotRepeatIt) {
    for (const char* secret :
         {"", "\n", "-1", "-0.5", "nan", "inf", "-inf", "infinity", "1e400", "1e-400", "+1", "1 2", "1\n2",
          "0x10", "1,5", "1.5s", "root:$6$hash", "NaN(123)", "1\xc2\xa0"}) {
        const auto value = number(secret);
        ASSERT_FALSE(value) << secret;
        EXPECT_THAT(value.error().text,
                    testing::AllOf(HasSubstr("/run/app/p99: must contain exactly one finite number"),
                                   testing::Not(HasSubstr("hash"))));
    }
    EXPECT_FALSE(number(std::string("1\0", 2)));
    EXPECT_EQ(number(fmt::format("{:>5001}", 3)).error().code, EFBIG);
}

// The read does not hang, and only regular files are opened.
TEST(MachineCounter, AFileIsARegularOne) {
    const TempTree tree{Dir("run/app", {File("p99", "5\n"), Dir("folder")})};
    ASSERT_EQ(::mkfifo(tree.path("run/app/fifo").c_str(), 0600), 0);
    for (const char* other : {"/run/app/fifo", "/run/app/folder", "/run/app"}) {
        const auto value = read_machine_counter({tree.root()}, std::string("file:") + other);
        ASSERT_FALSE(value) << other;
        EXPECT_THAT(value.error().text, HasSubstr(std::string(other) + ": not a regular file"));
    }
    for (const char* device : {"file:/dev/null", "file:/dev/zero", "file:/proc/self/fd"})
        EXPECT_THAT(read_machine_counter({""}, device).error().text, HasSubstr(": not a regular file"))
            << device;
    EXPECT_EQ(read_machine_counter({tree.root()}, "file:/run/app/p98").error().code, ENOENT);
    EXPECT_EQ(read_machine_counter({tree.root()}, "file:/run/app/p99/x").error().code, ENOTDIR);
}

TEST(MachineCounter, AFileMayBeTheKernelsOrALink) {
    EXPECT_GE(read_machine_counter({""}, "file:/proc/sys/kernel/pid_max").value(), 1);
    EXPECT_FALSE(read_machine_counter({""}, "file:/proc/self/status"));
    TempTree tree{File("run/real", "8\n")};
    tree.link("run/link", "real");
    tree.link("run/loop", "loop");
    EXPECT_EQ(read_machine_counter({tree.root()}, "file:/run/link"), 8);
    EXPECT_EQ(read_machine_counter({tree.root()}, "file:/run/loop").error().code, ELOOP);
}

TEST(MachineCounter, AWindowIsARateOfAtLeastOneUnitAndAFilesNumberStaysUnlessItIsZero) {
    const struct {
        const char* name;
        double before, after, value;
    } rows[] = {{"psi:cpu.some", 1e6, 3e6, 0.25},
                {"diskstats:vda.rkB", 100, 900, 100},
                {"psi:cpu.some", 5, 5, 1e-6 / 8},
                {"diskstats:vda.rkB", 5, 5.5, 1.0 / 8},
                {"file:/x", 9, 3, 3},
                {"file:/x", 9, 1e-9, 1e-9},
                {"file:/x", 9, 0, kZeroReading},
                {"file:/x", 0, 0, kZeroReading}};
    for (const auto& [name, before, after, value] : rows)
        EXPECT_DOUBLE_EQ(value_of_window(name, before, after, 8).value(), value) << name;
    EXPECT_FALSE(value_of_window("latency", 1, 2, 1));
    EXPECT_THAT(value_of_window("psi:cpu.some", 6, 5, 8).error().text,
                HasSubstr("psi:cpu.some went backwards"));
    EXPECT_FALSE(value_of_window("diskstats:vda.rkB", 6, 5, 8));
    for (double seconds : {0.0, -1.0, std::nan("")})
        EXPECT_THAT(value_of_window("psi:cpu.some", 5, 6, seconds).error().text, HasSubstr("zero-length"));
}

}  // namespace
}  // namespace wq
