// SPDX-License-Identifier: LGPL-2.1-or-later
// Topologies from sources other than a tree of sysfs.
#include <gmock/gmock.h>
#include <hwloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "ctl/commands/shown.h"
#include "fake_machine.h"
#include "read_tree.h"
#include "run_command.h"

#ifdef WQ_TUNED_SANITIZED
#define WQ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WQ_ASAN 1
#endif
#endif
#ifdef WQ_ASAN
#include <sanitizer/lsan_interface.h>
// hwloc 2.9 leaks the objects of an XML file that it refuses. This is not our bug: do not report it.
using LeaksOfHwloc = __lsan::ScopedDisabler;
#else
struct LeaksOfHwloc {
    LeaksOfHwloc() {}  // not trivial, to avoid a warning about an unused variable
};
#endif

namespace wq {
namespace {

using test::cpu_tree;
using test::Dir;
using test::File;
using test::llcs;
using test::must_read;
using test::read;
using test::TempTree;
using test::why_not;
using test::workqueue;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(OtherSources, Synthetic) {
    const Topology topology = must_read("synthetic:package:2 l3:2 core:3 pu:2");
    EXPECT_EQ(topology.online.list(), "0-23");
    EXPECT_EQ(topology.cores.size(), 12U);
    EXPECT_THAT(llcs(topology), ElementsAre("0-5", "6-11", "12-17", "18-23"));
    EXPECT_THAT(llcs(must_read("synthetic:numa:2 pu:2")), ElementsAre("0", "1", "2", "3"));
    EXPECT_EQ(must_read("synthetic:numa:2 pu:2").nodes.size(), 2U);
    EXPECT_THAT(test::lists(topology.packages), ElementsAre("0-11", "12-23"));
    EXPECT_THAT(must_read("synthetic:numa:2 pu:2").packages, testing::IsEmpty());
    EXPECT_EQ(must_read("synthetic:core:2 pu:2(indexes=0,2,1,3)").cores[0].list(), "0,2");
}

TEST(OtherSources, BadSyntheticIsOneLine) {
    for (const char* text :
         {"rubbish", "pu:0", "core:2", "(", "[", "[numa", "pu", ":", " ", "pu:2(indexes=", "0"})
        EXPECT_THAT(why_not(std::string("synthetic:") + text), HasSubstr("not a synthetic topology")) << text;
    EXPECT_THAT(why_not("synthetic:l2:2(indexes=numa:core) core:2 pu:2"), HasSubstr("crashes"))
        << "an assert";
    for (const char* text : {"pu:65537", "package:4000000000 pu:4000000000", "pu:0x7fffffff",
                             "pu:99999999999999999999", "pu:2(indexes=0,4000000000)", "65536 2 1",
                             "core:+4000000000 pu:1", "core:\t4000000000 pu:1", "core:-1 pu:1"})
        EXPECT_THAT(why_not(std::string("synthetic:") + text), HasSubstr("more than 65536 CPUs")) << text;
}

// The XML that hwloc exports of the synthetic topology TEXT, in TREE's machine.xml.
std::string exported(TempTree& tree, const char* text) {
    hwloc_topology_t hwloc = nullptr;
    EXPECT_EQ(hwloc_topology_init(&hwloc), 0);
    EXPECT_EQ(hwloc_topology_set_synthetic(hwloc, text), 0);
    EXPECT_EQ(hwloc_topology_load(hwloc), 0);
    EXPECT_EQ(hwloc_topology_export_xml(hwloc, tree.path("machine.xml").c_str(), 0), 0);
    hwloc_topology_destroy(hwloc);
    return tree.read("machine.xml");
}

TEST(OtherSources, XmlIsWhatWasExported) {
    TempTree tree;
    const std::string text = exported(tree, "numa:2 l3:2 core:3 pu:2");
    const Topology topology = must_read("xml:" + tree.path("machine.xml"));
    const Topology same = must_read("synthetic:numa:2 l3:2 core:3 pu:2");
    EXPECT_EQ(topology.cores, same.cores);
    EXPECT_EQ(llcs(topology), llcs(same));
    EXPECT_EQ(topology.llcs[2].numa_node, 1U);

    // A truncated file gives an error, and nothing worse.
    const LeaksOfHwloc leaks;
    for (std::size_t length = 0; length < text.size() - 20; length += 97) {
        tree.write("cut.xml", text.substr(0, length));
        EXPECT_THAT(why_not("xml:" + tree.path("cut.xml")), HasSubstr("cut.xml")) << length;
    }
}

// hwloc's parsers crash on one in twenty of these.
TEST(OtherSources, SpoiltXmlNeverCrashes) {
    TempTree tree;
    const std::string sane = exported(tree, "numa:2 l3:1 core:2 pu:2");
    const LeaksOfHwloc leaks;
    std::mt19937 random(42);
    for (int i = 0; i < 100; i++) {
        std::string text = sane;
        for (int flips = 0; flips < 3; flips++) text[random() % text.size()] = static_cast<char>(random());
        tree.write("spoilt.xml", text);
        const auto topology = read_topology("xml:" + tree.path("spoilt.xml"));
        EXPECT_TRUE(topology ||
                    topology.error().text.find("hwloc cannot load this topology") != std::string::npos);
    }
}

// What `lstopo --of xml` of hwloc 2 writes for one socket of four cores with caches of LEVEL; 0: none.
// INFO: of the machine; VENDOR: of the package.
std::string xml_of(unsigned level, const std::string& info = "", const std::string& vendor = "") {
    const auto object = [](const std::string& type, unsigned mask, const std::string& inside) {
        static unsigned id = 1;
        return fmt::format(
            "<object type=\"{0}\" os_index=\"{3}\" cpuset=\"{1:#x}\" complete_cpuset=\"{1:#x}\" "
            "allowed_cpuset=\"{1:#x}\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "
            "allowed_nodeset=\"0x1\" gp_index=\"{2}\"{4}>{5}</object>\n",
            type, mask, id++, std::countr_zero(mask),
            type.ends_with("Cache") ? fmt::format(" depth=\"{}\" cache_size=\"1\" cache_linesize=\"64\" "
                                                  "cache_associativity=\"1\" cache_type=\"0\"",
                                                  type[1])
                                    : "",
            inside);
    };
    const auto named = [](const std::string& name, const std::string& value) {
        return value.empty() ? "" : fmt::format("<info name=\"{}\" value=\"{}\"/>\n", name, value);
    };
    std::string cores;
    for (unsigned mask : {1U, 2U, 4U, 8U}) {
        const std::string core = object("Core", mask, object("PU", mask, ""));
        cores += level >= 2 ? object("L2Cache", mask, core) : core;
    }
    if (level == 3) cores = object("L3Cache", 15, cores);
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
           "<topology version=\"2.0\">\n" +
           object("Machine", 15,
                  named("Architecture", info) + object("NUMANode", 15, "") +
                      object("Package", 15, named("CPUVendor", vendor) + cores)) +
           "</topology>\n";
}

TEST(XmlThatHwlocCannotLoad, IsToldWhy) {
    const LeaksOfHwloc leaks;
    const std::string sane = xml_of(3);
    const std::pair<std::string, const char*> files[] = {
        {test::replaced(sane, "version=\"2.0\"", "version=\"3.0\""),
         "its export version is 3.0, and hwloc 2 reads 2.x; export it with `lstopo --of xml "
         "--export-xml-flags v2"},
        {test::replaced(sane, "\n", "\r\n"), "its lines end in CRLF"},
        {"\xef\xbb\xbf" + sane, "it begins with a byte order mark"},
        {"\xef\xbb\xbf" + test::replaced(sane, "\n", "\r\n"),
         "byte order mark (remove it with `sed -i "
         "'1s/^\\xEF\\xBB\\xBF//' FILE`), and its lines end in CRLF"},
        {test::replaced(sane, "<topology", "<!-- by hand -->\n<topology"),
         "a comment stands before <topology>"},
        {test::replaced(sane, "</topology>", ""), "it is damaged"},
        {"hello\n", "it has no <topology>"}};
    TempTree tree;
    for (const auto& [text, why] : files) {
        tree.write("machine.xml", text);
        if (HWLOC_API_VERSION >= 0x20c00 && (why == files[0].second || why == files[1].second))
            continue;  // it loads these
        EXPECT_THAT(why_not("xml:" + tree.path("machine.xml")), HasSubstr(why));
    }
    tree.write("machine.xml", sane);
    EXPECT_THAT(llcs(must_read("xml:" + tree.path("machine.xml"))), ElementsAre("0-3"));
}

TEST(Xml, IsReadFromStandardInput) {
    const TempTree tree{File("machine.xml", xml_of(3))};
    const int before = ::dup(STDIN_FILENO);
    ASSERT_NE(std::freopen(tree.path("machine.xml").c_str(), "r", stdin), nullptr);
    EXPECT_THAT(llcs(must_read("xml:-")), ElementsAre("0-3"));
    ::dup2(before, STDIN_FILENO);
    ::close(before);
}

// On AMD without an L3 the kernel's LLC is the package, on Intel the L2.
TEST(Xml, ToldOfArchitectureAndVendorFollowsTheKernelsRule) {
    struct Case {
        unsigned level;
        const char *arch, *vendor;
        std::vector<std::string> llcs;
        const char* unknown;
    };
    const Case cases[] = {
        {2, "x86_64", "AuthenticAMD", {"0-3"}, ""},
        {2, "x86_64", "GenuineIntel", {"0", "1", "2", "3"}, ""},
        {3, "x86_64", "GenuineIntel", {"0-3"}, ""},
        {3, "", "", {"0-3"}, ""},
        {2, "x86_64", "", {"0", "1", "2", "3"}, "the vendor of the CPUs is not known"},
        {2, "", "", {"0", "1", "2", "3"}, "the XML has no L3 in it, and does not tell the architecture"},
        {0, "x86_64", "AuthenticAMD", {"0-3"}, "the XML has no caches in it; export it with"},
        {0, "s390x", "", {"0-3"}, ""}};
    TempTree tree;
    for (const Case& c : cases) {
        tree.write("machine.xml", xml_of(c.level, c.arch, c.vendor));
        const Topology topology = must_read("xml:" + tree.path("machine.xml"));
        EXPECT_EQ(llcs(topology), c.llcs) << c.level << c.arch << c.vendor;
        EXPECT_THAT(topology.llc_unknown, HasSubstr(c.unknown));
        EXPECT_EQ(topology.llc_unknown.empty(), *c.unknown == '\0') << topology.llc_unknown;
    }
}

TEST(OtherSources, BadOnesAreOneLine) {
    const TempTree tree{Dir("folder")};
    EXPECT_THAT(why_not("xml:" + tree.path("absent.xml")), HasSubstr("No such file"));
    EXPECT_THAT(why_not("xml:" + tree.path("folder")), HasSubstr("not a file"));
    EXPECT_THAT(why_not("xml:/dev/zero"), HasSubstr("not a file"));
    EXPECT_THAT(why_not("fsroot:" + tree.path("absent")), HasSubstr("no CPUs found"));
    EXPECT_THAT(why_not("fsroot:" + tree.path("folder")), HasSubstr("no CPUs found"));
    for (const char* source : {"", "live:", "fsroot", "fsroot:", "xml:", "synthetic:", "other:thing"})
        EXPECT_THAT(why_not(source), HasSubstr("must be live, fsroot:DIR")) << source;
}

TEST(OtherSources, TheUsersEnvironmentDoesNotMatter) {
    ::setenv("HWLOC_XMLFILE", "/nonexistent", 1);
    ::setenv("HWLOC_COMPONENTS", "xml,stop", 1);
    EXPECT_THAT(llcs(must_read("synthetic:l3:1 core:4 pu:1")), ElementsAre("0-3"));
}

// ---- a tree that was saved

// The topology and the plan of the tree ROOT, as JSON.
std::string seen_in(const std::string& root) {
    ctl::Options options;
    options.topology = "fsroot:" + root;
    const auto machine = ctl::read_machine(options);
    if (!machine) return machine.error().text;
    nlohmann::json plan = nlohmann::json::array();
    for (const PlanLine& line : machine->plan()) plan.push_back(ctl::plan_json(*machine, line));
    auto topology = ctl::topology_json(machine->topology, machine->kernel, machine->shard_size);
    topology["source"] = "";
    return topology.dump(1) + ctl::kernel_json(machine->kernel).dump(1) + plan.dump(1);
}

TEST(SaveTree, GivesTheSameTopologyAndPlan) {
    const test::CpuTree machines[] = {
        {.sockets = 2, .cores = 6, .threads = 2, .arch = "x86_64", .vendor = "GenuineIntel"},
        {.cores = 8,
         .offline = "3",
         .extra_possible = 4,
         .l3 = false,
         .arch = "x86_64",
         .vendor = "AuthenticAMD"},
        {.sockets = 1, .cores = 8, .isolated = "2-3", .clusters = 2, .l2s = 2, .arch = "aarch64"}};
    for (const test::CpuTree& machine : machines) {
        TempTree tree{cpu_tree(machine)};
        for (const auto& entry : test::kernel_tree(
                 {workqueue("kcryptd"), workqueue("odd", {.max_active_mode = 0444})}, "cache_shard", "8"))
            tree.add(entry);
        tree.write("proc/cmdline", "quiet luks.key=secret maxcpus=64 nosmt\n");
        tree.write("proc/sys/kernel/osrelease", "7.2.13\n");
        tree.write("boot/config-7.2.13", "CONFIG_SMP=y\nCONFIG_SCHED_MC=y\nCONFIG_SECRET=y\n");
        const TempTree copy;
        const std::string dir = copy.path("new/tree");
        const auto saved = save_tree(Paths{tree.root()}, dir);
        ASSERT_TRUE(saved) << saved.error().text;
        EXPECT_EQ(seen_in(dir), seen_in(tree.root()));
        EXPECT_EQ(copy.read("new/tree/proc/cmdline"), "maxcpus=64 nosmt\n") << "others can be secret";
    }
}

TEST(SaveTree, RefusesAFolderThatIsNotEmpty) {
    const TempTree tree{cpu_tree({.cores = 2})};
    const TempTree copy{File("file"), Dir("empty"), Dir("full", {File("file")})};
    for (const char* taken : {"full", "file"}) {
        const auto saved = save_tree(Paths{tree.root()}, copy.path(taken));
        ASSERT_FALSE(saved) << taken;
        EXPECT_THAT(saved.error().text, HasSubstr("exists and is not an empty folder"));
    }
    EXPECT_TRUE(save_tree(Paths{tree.root()}, copy.path("empty")));
    EXPECT_TRUE(copy.exists("empty/sys/devices/system/cpu/cpu1/topology/thread_siblings"));
}

}  // namespace
}  // namespace wq
