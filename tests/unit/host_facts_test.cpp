// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "ctl/topology_source.h"
#include "fake_machine.h"
#include "machine/host_facts.h"
#include "machine/isolation.h"

namespace wq {
namespace {

using test::Entry;
using test::File;
using test::TempTree;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- host facts

const Result<Topology> kNoTopology = fail("none");

HostFacts facts_of(const std::vector<Entry>& entries) {
    const TempTree tree(entries);
    return read_host_facts(Paths{tree.root()}, kNoTopology);
}

Entry x86(const std::string& flags) {
    return File("proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9654 96-Core Processor\n"
                "flags\t\t: " +
                    flags + "\n\nprocessor\t: 1\nvendor_id\t: Other\n");
}

Entry arm(const std::string& implementer, const std::string& part) {
    return File("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: " + implementer +
                                    "\nCPU architecture: 8\nCPU part\t: " + part + "\n\n");
}

Entry dmi(const std::string& name, const std::string& text) {
    return File("sys/class/dmi/id/" + name, text + "\n");
}

// An SMBIOS structure of type 4 whose processor version is string NUMBER (from 1) of STRINGS.
Entry smbios(unsigned char number, const std::vector<std::string>& strings) {
    std::string raw(0x30, '\0');
    raw[0] = 4;
    raw[1] = 0x30;
    raw[0x10] = static_cast<char>(number);
    for (const std::string& text : strings) raw += text + '\0';
    return File("sys/firmware/dmi/entries/4-0/raw", raw + '\0');
}

TEST(HostFacts, OfAnEmptyTreeNothingIsKnown) {
    EXPECT_FALSE(read_host_facts(Paths{}, kNoTopology).arch.empty()) << "of this machine";
    const HostFacts facts = facts_of({});
    EXPECT_THAT(facts.arch + facts.cpu_vendor + facts.kernel + facts.hostname + facts.machine_id, IsEmpty());
    EXPECT_THAT(facts.cpu_models, IsEmpty());
    EXPECT_FALSE(facts.llc_cores || facts.cores || facts.numa_nodes);
    EXPECT_EQ(facts.smt, std::nullopt);
    EXPECT_EQ(facts.is_virtual, std::nullopt);
}

TEST(HostFacts, AreReadFromTheKernelsFiles) {
    const HostFacts facts = facts_of({x86("fpu ht"), File("proc/sys/kernel/arch", "x86_64\n"),
                                      File("proc/sys/kernel/hostname", "web-7.example\n"),
                                      File("proc/sys/kernel/osrelease", "6.12.57+deb13-amd64\n"),
                                      File("etc/machine-id", "0123456789abcdef0123456789abcdef\n")});
    EXPECT_EQ(facts.arch, "x86_64");
    EXPECT_EQ(facts.cpu_vendor, "AuthenticAMD");
    EXPECT_THAT(facts.cpu_models, ElementsAre("AMD EPYC 9654 96-Core Processor"));
    EXPECT_EQ(facts.hostname, "web-7.example");
    EXPECT_EQ(facts.kernel, "6.12.57+deb13-amd64");
    EXPECT_EQ(facts.machine_id, "0123456789abcdef0123456789abcdef");
    for (const char* bad :
         {"uninitialized\n", "", "0123456789abcdef\n", "0123456789ABCDEF0123456789abcdeg\n"})
        EXPECT_EQ(facts_of({File("etc/machine-id", bad)}).machine_id, "") << bad;
}

TEST(HostFacts, AnArmServerGoesByTheNamesOfItsCoreAndOfItsProcessor) {
    const HostFacts grace = facts_of({arm("0x41", "0xd4f"), smbios(2, {"NVIDIA", "Grace A02 "})});
    EXPECT_EQ(grace.cpu_vendor, "ARM");
    EXPECT_THAT(grace.cpu_models, ElementsAre("Grace A02", "Neoverse-V2"));
    const HostFacts board = facts_of(
        {arm("0x41", "0xfff"), File("sys/firmware/devicetree/base/model", std::string("Some Board\0", 11))});
    EXPECT_THAT(board.cpu_models, ElementsAre("Some Board"));
    EXPECT_EQ(facts_of({arm("0xc0", "0xac3")}).cpu_vendor, "Ampere");
    EXPECT_EQ(facts_of({arm("0x99", "0x1")}).cpu_vendor, "");
    // A broken SMBIOS table says nothing.
    for (const auto& entry :
         {smbios(0, {"NVIDIA"}), smbios(9, {"NVIDIA"}), File("sys/firmware/dmi/entries/4-0/raw", "\4\60"),
          File("sys/firmware/dmi/entries/4-0/raw", std::string(0x30, '\xff'))})
        EXPECT_THAT(facts_of({entry}).cpu_models, IsEmpty());
}

TEST(HostFacts, AVirtualMachineShowsInOneOfSeveralFiles) {
    const std::vector<std::vector<Entry>> yes = {
        {x86("fpu hypervisor ht")},
        {arm("0x41", "0xd4f"), dmi("sys_vendor", "QEMU")},
        {dmi("sys_vendor", "Microsoft Corporation"), dmi("product_name", "Virtual Machine")},
        {dmi("sys_vendor", "Amazon EC2"), dmi("product_name", "c7g.large")},
        {File("sys/firmware/devicetree/base/model", "linux,dummy-virt")},
        {x86("fpu"), File("run/systemd/container", "lxc\n")},
    };
    for (const auto& tree : yes) EXPECT_EQ(facts_of(tree).is_virtual, true) << tree[0].text;
    const std::vector<std::vector<Entry>> no = {
        {x86("fpu ht hypervisors")},
        {arm("0x41", "0xd4f"), dmi("sys_vendor", "Supermicro")},
        {dmi("sys_vendor", "Amazon EC2"), dmi("product_name", "c7g.metal")},
        {x86("fpu hypervisor"), File("proc/xen/capabilities", "control_d\n")},
        {File("sys/firmware/devicetree/base/model", "Some Board")},
    };
    for (const auto& tree : no) EXPECT_EQ(facts_of(tree).is_virtual, false) << tree[0].text;
    EXPECT_EQ(facts_of({arm("0x41", "0xd4f")}).is_virtual, std::nullopt);
}

TEST(HostFacts, CountsAreTheTopologys) {
    HostFacts facts;
    take_counts(read_topology("synthetic:numa:2 l3:2 core:12 pu:2").value(), facts);
    EXPECT_EQ(facts.cores, 48U);
    EXPECT_EQ(facts.llc_cores, 12U);
    EXPECT_EQ(facts.numa_nodes, 2U);
    EXPECT_EQ(facts.smt, true);
    Topology one = read_topology("synthetic:l3:1 core:4 pu:1").value();
    take_counts(one, facts);
    EXPECT_EQ(facts.llc_cores, 4U);
    EXPECT_EQ(facts.smt, false);
    one.llc_unknown = "nobody tells";
    take_counts(one, facts);
    EXPECT_EQ(facts.llc_cores, std::nullopt) << "its LLCs are in doubt";
    EXPECT_EQ(facts.cores, 4U);
}

// The output of `printf %s MACHINE_ID/NAME | xxhsum -H64` divided by 2^64.
TEST(HostFacts, TheCanaryPositionIsXxh64) {
    const std::string id = "0123456789abcdef0123456789abcdef";
    EXPECT_NEAR(canary_position(id, "grace-canary"), 0.5595521997405869, 1e-12);
    EXPECT_NEAR(canary_position(id, "x"), 0.919199217588908, 1e-12);
}

// ---- swap

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
