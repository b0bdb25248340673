// SPDX-License-Identifier: LGPL-2.1-or-later
// Real machines as sysfs trees, with expected results that another program computed from the files. The
// archive is outside of this project.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ctl/commands/topology_command.h"
#include "kernel/hwloc_topology.h"
#include "temp_tree.h"

namespace wq {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kArchive = TOPOLOGIES;

// Every value of EXPECTED must be in ACTUAL. Objects in ACTUAL may have more keys.
void expect_agrees(const json& expected, const json& actual, const std::string& where) {
    if (expected.is_object()) {
        for (const auto& [key, value] : expected.items()) {
            ASSERT_TRUE(actual.contains(key)) << where << "." << key;
            expect_agrees(value, actual[key], fmt::format("{}.{}", where, key));
        }
    } else if (expected.is_array()) {
        ASSERT_EQ(expected.size(), actual.size()) << where;
        for (std::size_t i = 0; i < expected.size(); i++)
            expect_agrees(expected[i], actual[i], fmt::format("{}[{}]", where, i));
    } else {
        EXPECT_EQ(expected, actual) << where;
    }
}

class Machines : public testing::TestWithParam<const char*> {};

TEST_P(Machines, AgreesWithTheArchive) {
    const std::string name = GetParam();
    const fs::path tar = kArchive / (name + ".tar.xz");
    if (!fs::exists(tar)) GTEST_SKIP() << "no archive of machines at " << kArchive;
    const test::TempTree tree;
    const std::string unpack = fmt::format("tar -C '{}' -xf '{}'", tree.root(), tar.string());
    ASSERT_EQ(std::system(unpack.c_str()), 0) << unpack;  // NOLINT(cert-env33-c): all paths are of the test

    const auto topology = read_topology("fsroot:" + tree.path(name));
    ASSERT_TRUE(topology) << topology.error().text;
    EXPECT_TRUE(topology->warnings.empty()) << topology->warnings.front();
    if (name == "hwloc-16em64t-4s2c2t-offlines") {  // the tree has no file `present`
        EXPECT_EQ((topology->present - topology->online).list(), "2,5,13-14");
    }
    for (unsigned size : {4U, 8U, 16U}) {
        std::ifstream file(kArchive / "expected" / fmt::format("{}.s{}.json", name, size));
        ASSERT_TRUE(file) << name << " size " << size;
        expect_agrees(json::parse(file), json(ctl::topology_json(*topology, {}, size)),
                      fmt::format("size {}: ", size));
    }
}

INSTANTIATE_TEST_SUITE_P(All, Machines,
                         testing::Values("flux-core-ipa20", "hwloc-128arm-2pa2n8cluster4co",
                                         "hwloc-16em64t-4s2c2t-offlines",
                                         "hwloc-20em64t-hybrid-1p6c2t+2ca4co1t", "hwloc-20s390-2g6s4c",
                                         "hwloc-256ppc-8n8s4t", "hwloc-64amd64-4s2n4ca2co",
                                         "hwloc-cpuid-AMD-19h-Zen4-2xEpyc-9654", "hwloc-nvidia-dgx-gb10",
                                         "hwloc-offline-cpu0-node0", "nri-ca-2-socket-4-node-40-core",
                                         "util-linux-x86_64-epyc_7451"),
                         [](const auto& machine) {
                             std::string name = machine.param;
                             for (char& c : name)
                                 if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                             return name;
                         });

}  // namespace
}  // namespace wq
