// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "as_nobody.h"
#include "bpf/bpf_dump.h"
#include "ctl/topology_command.h"
#include "machine/hwloc_topology.h"
#include "temp_tree.h"

namespace wq {
namespace {

using ctl::Options;
using test::cpu_tree;
using test::Dir;
using test::File;
using test::TempTree;
using testing::HasSubstr;

const std::string kCpu = "sys/devices/system/cpu/";

struct Output {
    int exit;
    std::string out;
    std::string err;
};

Output run(const Options& options) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int exit = ctl::topology(options);
    std::fflush(stdout);
    const std::string out = testing::internal::GetCapturedStdout();
    return {exit, out, testing::internal::GetCapturedStderr()};
}

Options of(const TempTree& tree) {
    Options options;
    options.json = true;
    options.topology = "fsroot:" + tree.root();
    return options;
}

TEST(TopologyCommand, PrintsTheContract) {
    const TempTree tree{cpu_tree({.cores = 3, .threads = 2, .nodes = 0})};
    Options options = of(tree);
    options.shard_size = 2;
    const auto [exit, out, err] = run(options);
    EXPECT_EQ(exit, ctl::kOk);
    EXPECT_EQ(err, "");
    EXPECT_EQ(out, R"({"source":"fsroot:)" + tree.root() +
                       R"(","cpus":6,"cores":3,"threads_per_core":2,"shard_size":2,"llcs":[)"
                       R"({"cpus":"0-5","cores":3,"numa_node":null,"shards":["0-1,3-4","2,5"]}]})"
                       "\n");
}

TEST(TopologyCommand, SavesWhatItShows) {
    const TempTree tree{cpu_tree({.cores = 3, .threads = 2})};
    const TempTree copy;
    Options options = of(tree);
    options.save = copy.path("tree");
    const auto [exit, out, err] = run(options);
    EXPECT_EQ(exit, ctl::kOk) << err;
    options = of(tree);
    options.topology = "fsroot:" + copy.path("tree");
    const std::string again = run(options).out;
    EXPECT_EQ(again.substr(again.find("\"cpus\"")), out.substr(out.find("\"cpus\"")));
    options.save = copy.path("tree");
    EXPECT_EQ(run(options).exit, ctl::kFailure) << "it is not empty";
}

TEST(TopologyCommand, SaysOnceThatTheKernelsPodsWereNotRead) {
    const std::string text = test::as_nobody([] {
        KernelInfo kernel;
        const auto pods = read_kernel_pods();
        kernel.pods_unread = pods ? "" : pods.error().text;
        return ctl::why_not_its_own(kernel);
    });
    EXPECT_THAT(text, HasSubstr("Computed from sysfs; "));
    EXPECT_EQ(text.find("pods"), text.rfind("pods")) << text;
}

TEST(TopologyCommand, AddsIsolatedCpusAndWarningsWhereThereAreAny) {
    TempTree tree{cpu_tree({.cores = 4, .isolated = "3"})};
    tree.write(kCpu + "cpu1/topology/thread_siblings", "?");
    const auto [exit, out, err] = run(of(tree));
    EXPECT_EQ(exit, ctl::kOk);
    const auto json = nlohmann::json::parse(out);
    EXPECT_EQ(json["isolated"], "3");
    EXPECT_EQ(json["llcs"][0]["cpus"], "0-2");
    EXPECT_EQ(json["warnings"].size(), 1U);
    EXPECT_EQ(std::ranges::count(err, '\n'), 1);
}

TEST(TopologyCommand, TakesTheShardSizeOfTheOptionTheKernelThePolicyOrEight) {
    TempTree tree{cpu_tree({.cores = 4}),
                  Dir("sys/module/workqueue/parameters",
                      {File("default_affinity_scope", "cache_shard\n"), File("cache_shard_size", "4\n")})};
    const auto size = [](const Options& options) {
        const std::string out = run(options).out;
        return out.empty() ? 0U : nlohmann::json::parse(out)["shard_size"].get<unsigned>();
    };
    Options options = of(tree);
    EXPECT_EQ(size(options), 4U) << "another machine's tree, with its own kernel";
    tree.write("sys/module/workqueue/parameters/cache_shard_size", "0\n");
    EXPECT_EQ(size(options), 1U) << "which is how the kernel takes it";
    options.shard_size = 16;
    EXPECT_EQ(size(options), 16U);
    options.shard_size.reset();
    options.topology = "synthetic:pack:1 core:4 pu:1";
    options.root = tree.root();
    EXPECT_EQ(size(options), 8U);
    tree.write("small.toml", "[shard]\nsize = 3\n");
    options.config = tree.root() + "/small.toml";
    EXPECT_EQ(size(options), 3U);
    options.config = tree.root() + "/none.toml";
    EXPECT_EQ(size(options), 0U) << "no answer where the policy named is broken";
}

TEST(TopologyCommand, FailsInOneLine) {
    Options options;
    options.topology = "fsroot:/nonexistent";
    const auto [exit, out, err] = run(options);
    EXPECT_EQ(exit, ctl::kFailure);
    EXPECT_EQ(out, "");
    EXPECT_EQ(std::ranges::count(err, '\n'), 1);
}

TEST(TopologyTable, FitsTheTerminal) {
    const TempTree tree{cpu_tree({.sockets = 2, .cores = 24, .threads = 2, .llcs = 2, .interleaved = true})};
    for (std::size_t columns : {40U, 80U, 200U}) {
        Topology topology = read_topology("fsroot:" + tree.root()).value();
        topology.source = "fsroot:trees/two-sockets";
        const std::string table = ctl::topology_table(topology, {}, 8, columns);
        EXPECT_THAT(table, HasSubstr("2 x 6 cores")) << table;
        std::istringstream lines(table);
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), columns) << line;
    }
}

}  // namespace
}  // namespace wq
