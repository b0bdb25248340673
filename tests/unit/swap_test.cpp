// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "machine/isolation.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::TempTree;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kHeader = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

TEST(Swap, OnAVolumeOnAnEncryptedDiskGoesThroughAll) {
    TempTree tree;
    tree.write("proc/swaps", std::string(kHeader) + "/dev/dm-1 partition\t1024\t0\t-2\n");
    tree.write("sys/class/block/dm-1/dev", "254:1\n");
    tree.write("sys/dev/block/254:1/slaves/dm-0/dev", "254:0\n");
    tree.write("sys/dev/block/254:0/slaves/sda2/dev", "8:2\n");
    EXPECT_THAT(swap_devices(Paths{tree.root()}), ElementsAre("254:0", "254:1", "8:2"));
}

TEST(Swap, AFileIsOnTheDeviceOfItsFileSystem) {
    TempTree tree;
    tree.write("swapfile", "");
    struct stat about {};
    ASSERT_EQ(::stat(tree.path("swapfile").c_str(), &about), 0);
    const std::string number = fmt::format("{}:{}", major(about.st_dev), minor(about.st_dev));
    tree.write("proc/swaps", std::string(kHeader) + "/swapfile file\t1024\t0\t-2\n");
    tree.write("sys/dev/block/" + number + "/slaves/dm-7/dev", "254:7\n");
    EXPECT_THAT(swap_devices(Paths{tree.root()}), testing::UnorderedElementsAre(number, "254:7"));
}

TEST(Swap, WithoutAnyOrWithOneThatIsGoneThereAreNoDevices) {
    TempTree tree;
    EXPECT_THAT(swap_devices(Paths{tree.root()}), IsEmpty());
    tree.write("proc/swaps", kHeader);
    EXPECT_THAT(swap_devices(Paths{tree.root()}), IsEmpty());
    tree.write("proc/swaps", std::string(kHeader) + "/dev/dm-1 partition\n/none file\n\n");
    EXPECT_THAT(swap_devices(Paths{tree.root()}), IsEmpty());
}

TEST(Swap, AWorkqueueServesItByTheNumberInItsName) {
    const std::set<std::string> devices{"254:1", "8:2"};
    EXPECT_TRUE(serves_swap("kcryptd-254:1-0", devices));
    EXPECT_FALSE(serves_swap("kcryptd-254:10-0", devices));
    EXPECT_FALSE(serves_swap("kcryptd-254:0-1", devices));
    EXPECT_FALSE(serves_swap("writeback", devices));
    EXPECT_FALSE(serves_swap("kcryptd-254:1-0", {}));
}

}  // namespace
}  // namespace wq
