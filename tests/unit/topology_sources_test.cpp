// SPDX-License-Identifier: LGPL-2.1-or-later
// Topologies from sources other than a tree of sysfs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <stdlib.h>

#include <random>

#include "read_tree.h"

#if defined(__SANITIZE_ADDRESS__)
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
using test::lists;
using test::llcs;
using test::must_read;
using test::read;
using test::TempTree;
using test::why_not;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(OtherSources, Synthetic) {
    const Topology topology = must_read("synthetic:package:2 l3:2 core:3 pu:2");
    EXPECT_EQ(topology.online.list(), "0-23");
    EXPECT_EQ(topology.cores.size(), 12U);
    EXPECT_THAT(llcs(topology), ElementsAre("0-5", "6-11", "12-17", "18-23"));
    EXPECT_THAT(llcs(must_read("synthetic:numa:2 pu:2")), ElementsAre("0", "1", "2", "3"));
    EXPECT_EQ(must_read("synthetic:numa:2 pu:2").nodes.size(), 2U);
    EXPECT_THAT(lists(topology.packages), ElementsAre("0-11", "12-23"));
    EXPECT_THAT(must_read("synthetic:numa:2 pu:2").packages, IsEmpty());
    EXPECT_EQ(must_read("synthetic:core:2 pu:2(indexes=0,2,1,3)").cores[0].list(), "0,2");
}

TEST(OtherSources, BadSyntheticIsOneLine) {
    for (const char* text :
         {"rubbish", "pu:0", "core:2", "(", "[", "[numa", "pu", ":", " ", "pu:2(indexes=", "0"})
        EXPECT_THAT(why_not(std::string("synthetic:") + text), HasSubstr("not a synthetic topology")) << text;
    EXPECT_THAT(why_not("synthetic:l2:2(indexes=numa:core) core:2 pu:2"), HasSubstr("crashes"))
        << "an assert";
    for (const char* text : {"pu:65537", "package:4000000000 pu:4000000000", "pu:0x7fffffff",
                             "pu:99999999999999999999", "pu:2(indexes=0,4000000000)", "65536 2 1"})
        EXPECT_THAT(why_not(std::string("synthetic:") + text), HasSubstr("more than 65536 CPUs")) << text;
}

TEST(OtherSources, XmlIsWhatWasExported) {
    TempTree tree;
    hwloc_topology_t hwloc = nullptr;
    ASSERT_EQ(hwloc_topology_init(&hwloc), 0);
    ASSERT_EQ(hwloc_topology_set_synthetic(hwloc, "numa:2 l3:2 core:3 pu:2"), 0);
    ASSERT_EQ(hwloc_topology_load(hwloc), 0);
    ASSERT_EQ(hwloc_topology_export_xml(hwloc, tree.path("machine.xml").c_str(), 0), 0);
    hwloc_topology_destroy(hwloc);
    const Topology topology = must_read("xml:" + tree.path("machine.xml"));
    const Topology same = must_read("synthetic:numa:2 l3:2 core:3 pu:2");
    EXPECT_EQ(topology.cores, same.cores);
    EXPECT_EQ(llcs(topology), llcs(same));
    EXPECT_EQ(topology.llcs[2].numa_node, 1U);

    // A truncated file gives an error, and nothing worse.
    const LeaksOfHwloc leaks;
    const std::string text = tree.read("machine.xml");
    for (std::size_t length = 0; length < text.size() - 20; length += 97) {
        tree.write("cut.xml", text.substr(0, length));
        EXPECT_THAT(why_not("xml:" + tree.path("cut.xml")), HasSubstr("cut.xml")) << length;
    }
}

// hwloc's parsers crash on one in twenty of these.
TEST(OtherSources, SpoiltXmlNeverCrashes) {
    TempTree tree;
    hwloc_topology_t hwloc = nullptr;
    ASSERT_EQ(hwloc_topology_init(&hwloc), 0);
    ASSERT_EQ(hwloc_topology_set_synthetic(hwloc, "numa:2 l3:1 core:2 pu:2"), 0);
    ASSERT_EQ(hwloc_topology_load(hwloc), 0);
    ASSERT_EQ(hwloc_topology_export_xml(hwloc, tree.path("machine.xml").c_str(), 0), 0);
    hwloc_topology_destroy(hwloc);
    const std::string sane = tree.read("machine.xml");
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

TEST(OtherSources, BadOnesAreOneLine) {
    const TempTree tree{File("empty.xml"), File("text.xml", "hello\n"), Dir("folder")};
    EXPECT_THAT(why_not("xml:" + tree.path("absent.xml")), HasSubstr("No such file"));
    EXPECT_THAT(why_not("xml:" + tree.path("folder")), HasSubstr("not a file"));
    EXPECT_THAT(why_not("xml:/dev/zero"), HasSubstr("not a file"));
    EXPECT_THAT(why_not("xml:" + tree.path("empty.xml")), HasSubstr("hwloc cannot load this topology"));
    EXPECT_THAT(why_not("xml:" + tree.path("text.xml")), HasSubstr("hwloc cannot load this topology"));
    EXPECT_THAT(why_not("fsroot:" + tree.path("absent")), HasSubstr("no CPUs found"));
    EXPECT_THAT(why_not("fsroot:" + tree.path("folder")), HasSubstr("no CPUs found"));
    for (const char* source : {"", "live:", "fsroot", "fsroot:", "xml:", "synthetic:", "other:thing"})
        EXPECT_THAT(why_not(source), HasSubstr("must be live, fsroot:DIR")) << source;
}

TEST(OtherSources, TheUsersEnvironmentNeitherMattersNorChanges) {
    ::setenv("HWLOC_XMLFILE", "/nonexistent", 1);
    ::setenv("HWLOC_SYNTHETIC", "pu:1", 1);
    ::setenv("HWLOC_COMPONENTS", "synthetic", 1);
    const TempTree tree{cpu_tree({.cores = 4})};
    EXPECT_THAT(llcs(read(tree)), ElementsAre("0-3"));
    EXPECT_STREQ(::getenv("HWLOC_XMLFILE"), "/nonexistent");
    EXPECT_STREQ(::getenv("HWLOC_COMPONENTS"), "synthetic");
    EXPECT_EQ(::getenv("HWLOC_FSROOT"), nullptr);
    for (const char* name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_COMPONENTS"}) ::unsetenv(name);
}

}  // namespace
}  // namespace wq
