// SPDX-License-Identifier: LGPL-2.1-or-later
// What the device mapper tells about mappings, and what follows for their workqueues.
#include "ctl/device_mapper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "temp_tree.h"

namespace wq {
namespace {

TEST(CryptDevice, IsInTheNameOfItsWorkqueue) {
    for (const auto& [workqueue, device] : {std::pair{"kcryptd-254:0-1", "254:0"},
                                            {"kcryptd-254:10-12", "254:10"},
                                            {"kcryptd_io-254:0-1", ""},
                                            {"kcryptd-", ""},
                                            {"kcryptd-1", ""},
                                            {"kcryptd-luks-1", ""},
                                            {"writeback", ""}})
        EXPECT_EQ(crypt_device_of(workqueue), device) << workqueue;
}

// The kernel's text for a measurement (drivers/md/dm-crypt.c, crypt_status(), STATUSTYPE_IMA), by flags.
TEST(CryptBypass, IsReadFromWhatTheKernelTells) {
    struct Row {
        char read, write, submit;
        const char *options, *text;
    };
    for (const Row& row :
         {Row{'n', 'n', 'n', "", ""},
          {'y', 'n', 'n', "no_read_workqueue",
           "reads bypass this workqueue: no scope affects them, only writes (no_read_workqueue)"},
          {'n', 'y', 'n', "no_write_workqueue",
           "writes bypass this workqueue: no scope affects them, only reads (no_write_workqueue)"},
          {'y', 'y', 'n', "no_read_workqueue no_write_workqueue",
           "reads and writes bypass this workqueue: no scope affects them (no_read_workqueue, "
           "no_write_workqueue)"},
          {'n', 'n', 'y', "submit_from_crypt_cpus",
           "the kworker that encrypted a write also sends it, so a scope says from which CPUs writes come "
           "(submit_from_crypt_cpus)"}}) {
        const CryptBypass found =
            bypass_in(fmt::format("target_name=crypt,target_version=1.28.0,,allow_discards=y,same_cpu_crypt="
                                  "y,submit_from_crypt_cpus={},"
                                  "no_read_workqueue={},no_write_workqueue={},iv_large_sectors=n,cipher_"
                                  "string=aes-xts-plain64,key_size=64",
                                  row.submit, row.read, row.write));
        EXPECT_EQ(fmt::format("{}", fmt::join(found.options(), " ")), row.options);
        EXPECT_EQ(found.text(), row.text);
    }
}

TEST(CryptBypass, IsAnErrorWithoutADeviceMapper) {
    const test::TempTree tree;
    const auto found = read_crypt_bypass(Paths{tree.root()}, "254:0");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ENOENT);
    EXPECT_EQ(read_crypt_bypass(Paths{tree.root()}, "x").error().code, EINVAL);
}

}  // namespace
}  // namespace wq
