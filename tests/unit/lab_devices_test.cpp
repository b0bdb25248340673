// SPDX-License-Identifier: LGPL-2.1-or-later
// The part of the devices that can be tested without a kernel of our own (checks/bench.sh tests the rest in a
// guest), and fio.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>

#include "ctl/lab/bench.h"
#include "temp_tree.h"

namespace wq::lab {
namespace {

using test::Dir;
using test::File;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kName = "wq-bench-0123456789abcdef";

class DevicesTest : public testing::Test {
  protected:
    Status answer_;
    std::vector<std::vector<std::string>> ran_;
    std::size_t let_go_at_ = 0;  // number of commands after which the driver is no longer in use
    test::TempTree tree_{{Dir("sys/kernel/config/nullb/mine"), Dir("dev"), Dir("sys/module")}};
    Devices devices_{tree_.root(), [&](const auto& words) {
                         ran_.push_back(words);
                         if (ran_.size() == let_go_at_) tree_.remove("sys/module/null_blk");
                         return answer_;
                     }};
};

TEST_F(DevicesTest, LoadsTheDriverWithoutADevice) {
    EXPECT_FALSE(devices_.has_driver());
    EXPECT_TRUE(devices_.load_driver());
    EXPECT_THAT(ran_, ElementsAre(ElementsAre("modprobe", "--quiet", "null_blk", "nr_devices=0")));
    EXPECT_TRUE(devices_.unload_driver());
    EXPECT_EQ(ran_.size(), 1U) << "it is not loaded";
    tree_.add(Dir("sys/module/null_blk/parameters"));
    EXPECT_TRUE(devices_.load_driver());
    EXPECT_EQ(ran_.size(), 1U) << "it is loaded";
    tree_.write("sys/module/null_blk/parameters/nr_devices", "2\n");
    EXPECT_TRUE(devices_.unload_driver());
    EXPECT_EQ(ran_.size(), 1U) << "it has devices of somebody else's";
    tree_.write("sys/module/null_blk/parameters/nr_devices", "0\n");
    let_go_at_ = 4;
    EXPECT_TRUE(devices_.unload_driver());
    EXPECT_EQ(ran_.size(), 4U) << "again, as long as it is in use";
    EXPECT_THAT(ran_.back(), ElementsAre("modprobe", "--quiet", "--remove", "null_blk"));
    answer_ = fail("modprobe null_blk: exit code 1");
    EXPECT_EQ(devices_.load_driver().error().text,
              "null_blk, the device below: modprobe null_blk: exit code 1");
}

TEST_F(DevicesTest, WhatIsNotThereIsRemoved) {
    EXPECT_TRUE(devices_.remove_crypt(kName)) << "without a device mapper";
    EXPECT_TRUE(devices_.remove_ram(kName));
    const auto made = devices_.make_ram(kName, 128U << 20U);  // the tree has no configfs attributes
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().text, HasSubstr(std::string(kName) + "/size: No such file"));
    EXPECT_TRUE(devices_.remove_ram(kName));
    EXPECT_FALSE(tree_.exists(std::string("sys/kernel/config/nullb/") + kName));
    EXPECT_TRUE(tree_.exists("sys/kernel/config/nullb/mine")) << "somebody else's";
    const auto crypt = devices_.make_crypt(kName, "250:0", 1U << 20U);
    ASSERT_FALSE(crypt);
    EXPECT_EQ(crypt.error().code, ENOENT);
}

// fio on a file, or a program in its place.
class FioTest : public testing::Test {
  protected:
    Result<Figures> run(double seconds, const std::string& program = "fio",
                        const std::string& load = "write") {
        return Fio(processes_, program).run({tree_.path("disk"), ""}, {2, 4, seconds}, load);
    }
    // A program that does what SCRIPT says.
    std::string says(const std::string& script) {
        tree_.add(File("fio", "#!/bin/sh\n" + script + "\n"));
        EXPECT_EQ(::chmod(tree_.path("fio").c_str(), 0755), 0);
        return tree_.path("fio");
    }
    test::TempTree tree_{{File("disk", std::string(1U << 20U, 'x'))}};
    Processes processes_;
};

TEST_F(FioTest, WritesReadsAndTimes) {
    ASSERT_TRUE(Fio(processes_).check()) << "fio is one of the packages that ./dev installs";
    for (const char* load : {"write", "read"}) {
        const auto ran = run(0.3, "fio", load);
        if (!ran && ran.error().text.find("Invalid argument") != std::string::npos)
            GTEST_SKIP() << "no O_DIRECT in the temporary directory";
        ASSERT_TRUE(ran) << ran.error().text;
        EXPECT_GE(ran->seconds, 0.3);
        EXPECT_GT(ran->value, 0);
        EXPECT_GT(*ran->io_p50, 0);
        EXPECT_LE(*ran->io_p50, *ran->io_p99);
        EXPECT_EQ(tree_.read("disk").size(), 1U << 20U) << "beyond the end";
    }
}

TEST_F(FioTest, ReadsWhatFioSaysOfItsLoad) {
    const auto of = [](const std::string& runtime, const std::string& bytes, const std::string& p99) {
        return R"({"runtime": )" + runtime + R"(, "bw_bytes": )" + bytes +
               R"(, "clat_ns": {"percentile": {"50.000000": 1000, "99.000000": )" + p99 + "}}}";
    };
    const std::string report =
        "echo 'fio: a warning\n{\"jobs\": [{\"write\": " + of("2000", "125000000", "9000") +
        ", \"read\": " + of("4000", "250000000", "8000") + "}]}'";
    const std::string program = says(report);
    const struct {
        const char* load;
        double mb_per_s, seconds, p99;
    } loads[] = {{"write", 125, 2.5, 9000}, {"read", 250, 4.5, 8000}};
    for (const auto& each : loads) {
        const auto ran = run(2, program, each.load);
        ASSERT_TRUE(ran) << ran.error().text;
        EXPECT_EQ(ran->value, each.mb_per_s);
        EXPECT_EQ(ran->mb_per_s, each.mb_per_s);
        EXPECT_EQ(ran->seconds, each.seconds) << "a quarter more to settle";
        EXPECT_EQ(ran->io_p99, each.p99);
    }
    for (const auto& [script, words] :
         {std::pair{R"(echo '{"jobs": [{"write": {"runtime": 0, "bw_bytes": 0, "clat_ns": {"N": 0}}}]}')",
                    "no write ended in time"},
          {"echo '{'", "cut off"},
          {"", "empty"},
          {"echo 'fio: io_u error: No space' >&2; echo '{\n}'; exit 1",
           "fio: exit code 1: fio: io_u error: No space"},
          {"kill -KILL $$", "killed by SIGKILL"}}) {
        const auto failed = run(1, says(script));
        ASSERT_FALSE(failed) << script;
        EXPECT_THAT(failed.error().text, HasSubstr(words));
    }
}

TEST_F(FioTest, WithoutFioOneLineSaysHowToInstallIt) {
    EXPECT_EQ(Fio(processes_, tree_.path("nothing")).check().error().text,
              "fio, which makes the load, is not installed: apt install fio");
    EXPECT_TRUE(Fio(processes_, says("exit 0")).check());
    EXPECT_FALSE(Fio(processes_, says("exit 127")).check());
}

TEST_F(FioTest, ASignalOrAMissingDeviceEndsIt) {
    ::raise(SIGTERM);  // blocked by processes_.interrupts
    const auto ran = run(60);
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().code, EINTR);
    EXPECT_EQ(ran.error().text, "interrupted by SIGTERM");
    tree_.remove("disk");
    const auto missing = run(1);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ENOENT);
    EXPECT_THAT(missing.error().text, HasSubstr(tree_.path("disk")));
    EXPECT_FALSE(tree_.exists("disk")) << "nor is it made";
}

}  // namespace
}  // namespace wq::lab
