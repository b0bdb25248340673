// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan --boot` with types of a kernel that the test generates. golden/boot.txt has the rest.
#include <bpf/btf.h>
#include <gmock/gmock.h>

#include "ctl/options.h"
#include "fake_machine.h"

namespace wq {
namespace {

TEST(BootCommand, NamesPwlocksWhereTheKernelHasThemAndCpusAreIsolated) {
    test::TempTree tree{test::kernel_tree({}, "cache", "8", "ffffff")};
    tree.add(test::cpu_tree({.cores = 12, .threads = 2}));
    ctl::Options options;
    options.root = tree.root();
    options.boot = true;
    const auto says = [&] {
        testing::internal::CaptureStdout();
        EXPECT_EQ(ctl::plan_boot(options), ctl::kOk);
        return testing::internal::GetCapturedStdout();
    };
    const auto note = testing::HasSubstr("this kernel has pwlocks= (CONFIG_PWLOCKS)");
    btf* types = btf__new_empty();
    btf__add_func(types, "pwlocks_setup", BTF_FUNC_STATIC,
                  btf__add_func_proto(types, btf__add_int(types, "int", 4, BTF_INT_SIGNED)));
    unsigned size = 0;
    const auto* data = static_cast<const char*>(btf__raw_data(types, &size));
    tree.write("sys/kernel/btf/vmlinux", std::string(data, size));
    btf__free(types);
    EXPECT_THAT(says(), testing::Not(note));
    tree.write("sys/devices/system/cpu/nohz_full", "2-3\n");
    EXPECT_THAT(says(), note);
    tree.write("proc/cmdline", "quiet pwlocks=1\n");
    EXPECT_THAT(says(), testing::Not(note));
}

}  // namespace
}  // namespace wq
