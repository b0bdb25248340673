// SPDX-License-Identifier: LGPL-2.1-or-later
// The part of the devices and writers that can be tested without a kernel of our own. checks/bench.sh tests
// the rest in a guest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "ctl/lab/aio_load.h"
#include "ctl/lab/dm_control.h"
#include "ctl/lab/kernel_devices.h"
#include "temp_tree.h"

namespace wq::bench {
namespace {

using test::Dir;
using test::File;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kName = "wq-bench-0123456789abcdef";

class KernelDevicesTest : public testing::Test {
  protected:
    Status answer_;
    std::vector<std::vector<std::string>> ran_;
    std::size_t let_go_at_ = 0;  // number of commands after which the driver is no longer in use
    test::TempTree tree_{{Dir("sys/kernel/config/nullb/mine"), Dir("dev"), Dir("sys/module")}};
    KernelDevices devices_{tree_.root(), [&](const auto& words) {
                               ran_.push_back(words);
                               if (ran_.size() == let_go_at_) tree_.remove("sys/module/null_blk");
                               return answer_;
                           }};
};

TEST_F(KernelDevicesTest, LoadsTheDriverWithoutADevice) {
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
}

TEST_F(KernelDevicesTest, AKernelWithoutTheDriverIsToldInOneLine) {
    answer_ = fail("modprobe null_blk: exit code 1");
    const auto loaded = devices_.load_driver();
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().text, "null_blk, the device below: modprobe null_blk: exit code 1");
}

TEST_F(KernelDevicesTest, WhatIsNotThereIsRemoved) {
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

class AioLoadTest : public testing::Test {
  protected:
    // Error: EINVAL if the temporary directory does not support O_DIRECT; the caller then skips the test.
    Result<LoadFigures> run(double seconds) {
        return load_.run({.path = tree_.path("disk"),
                          .bytes = 1U << 20U,
                          .writers = 2,
                          .depth = 4,
                          .settle = 0.05,
                          .seconds = seconds},
                         [&] { edges_++; });
    }
    unsigned edges_ = 0;
    test::TempTree tree_{{File("disk")}};
    ab::Interrupts interrupts_;
    AioLoad load_{interrupts_};
};

TEST_F(AioLoadTest, WritesAndTimes) {
    const auto ran = run(0.3);
    if (!ran && ran.error().code == EINVAL) GTEST_SKIP() << "no O_DIRECT in the temporary directory";
    ASSERT_TRUE(ran) << ran.error().text;
    EXPECT_EQ(edges_, 2U);
    EXPECT_GE(ran->seconds, 0.3);
    EXPECT_GT(ran->writes, 0U);
    EXPECT_GT(ran->p50, 0);
    EXPECT_LE(ran->p50, ran->p90);
    EXPECT_LE(ran->p90, ran->p99);
    const std::string disk = tree_.read("disk");
    EXPECT_LE(disk.size(), 1U << 20U) << "beyond the end";
    EXPECT_EQ(disk.find_first_not_of(std::string("\0\1", 2)), std::string::npos);
}

TEST_F(AioLoadTest, ASignalEndsIt) {
    ::raise(SIGTERM);  // blocked by interrupts_
    const auto ran = run(60);
    ASSERT_FALSE(ran);
    if (ran.error().code == EINVAL) GTEST_SKIP() << "no O_DIRECT in the temporary directory";
    EXPECT_EQ(ran.error().code, EINTR);
    EXPECT_EQ(ran.error().text, "interrupted by SIGTERM");
}

TEST_F(AioLoadTest, AnErrorNamesTheDevice) {
    tree_.remove("disk");
    const auto ran = run(1);
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().code, ENOENT);
    EXPECT_THAT(ran.error().text, HasSubstr(tree_.path("disk")));
    EXPECT_EQ(edges_, 0U);
}

}  // namespace
}  // namespace wq::bench
