// SPDX-License-Identifier: LGPL-2.1-or-later
// The machine in a report.
#include "ctl/report/report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "fake_machine.h"
#include "machine/host_facts.h"
#include "report_html.h"

namespace wq::ctl {
namespace {

using test::count;
using test::expect_well_formed;
using test::machine;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string drawn(const Topology& topology, const Isolation& isolation = {},
                  const KernelInfo& kernel = test::kernel_72()) {
    return machine_html({topology, kernel, 8, isolation});
}

TEST(ReportMachine, HasAnElementPerCoreAndPerThread) {
    const std::string html = drawn(machine({.sockets = 2, .cores = 12, .threads = 2}));
    expect_well_formed(html);
    EXPECT_EQ(count(html, " data-core=\""), 24U);
    EXPECT_EQ(count(html, "<strong>Package"), 2U);
    EXPECT_EQ(count(html, "<p>LLC "), 2U);
    EXPECT_EQ(count(html, "<div class=\"shard\""), 4U) << "12 cores are two shards";
    EXPECT_THAT(html, HasSubstr("data-core=\"23\"><b>23</b><b>47</b></span>"));
    EXPECT_THAT(html, HasSubstr("NUMA node 1 · 12 cores · CPUs 12-23,36-47"));
}

TEST(ReportMachine, MarksWhatIsSetApart) {
    Topology topology = test::without(machine({.cores = 6, .threads = 2}), "5,11");
    topology.isolated = {2, 8, 3};  // a core, and one thread of another
    for (Llc& llc : topology.llcs) llc.cpus -= topology.isolated;
    const Isolation isolation{
        topology.isolated, {3, 4}, {{"/rt", {4}, "isolated"}, {"/all", {0}, "root"}}, true};
    const std::string html = drawn(topology, isolation);
    expect_well_formed(html);
    EXPECT_EQ(count(html, " data-core=\""), 5U);
    EXPECT_THAT(html, HasSubstr("In no LLC <small>1 core · 2,8"));
    EXPECT_THAT(html, HasSubstr("data-core=\"2\"><b class=\"i\">2</b><b class=\"i\">8</b></span>"));
    EXPECT_THAT(html, HasSubstr("data-core=\"3\"><b class=\"i n\">3</b><b>9</b></span>"));
    EXPECT_THAT(html, HasSubstr("data-core=\"4\"><b class=\"p n\">4</b><b>10</b></span>"));
    EXPECT_THAT(html, HasSubstr("<span class=\"core\"><b class=\"o\">11</b></span>"));
    EXPECT_THAT(html, HasSubstr("(nohz_full): CPUs 3-4"));
}

TEST(ReportMachine, OfMoreThan64CpusIsFolded) {
    const std::string small = drawn(machine({.sockets = 2, .cores = 16, .threads = 2}));
    EXPECT_EQ(count(small, "<details"), 0U) << "64 CPUs";
    const std::string large = drawn(machine({.sockets = 2, .cores = 17, .threads = 2}));
    expect_well_formed(large);
    const auto fold = large.find("<details><summary>Drawing of all 68 CPUs</summary>");
    ASSERT_NE(fold, std::string::npos);
    EXPECT_LT(large.find("68 CPUs, 34 cores, 2 LLCs"), fold) << "the figures stay in sight";
    EXPECT_GT(large.find(" data-core=\""), fold);
    EXPECT_EQ(count(large, " data-core=\""), 34U);
}

TEST(ReportMachine, OfNoKnownPackageIsStillDrawn) {
    Topology topology = machine({.sockets = 2, .cores = 4});
    topology.packages.pop_back();
    const std::string html = drawn(topology);
    EXPECT_EQ(count(html, " data-core=\""), 8U);
    EXPECT_THAT(html, HasSubstr("CPUs of no known package"));
    topology.packages.clear();
    EXPECT_EQ(count(drawn(topology), " data-core=\""), 8U);
}

TEST(ReportMachine, TellsOfTheKernelsOwnPods) {
    const Topology topology = machine({.cores = 4});
    KernelInfo kernel = test::kernel_72();
    EXPECT_THAT(drawn(topology, {}, kernel),
                AllOf(HasSubstr("by the kernel&#39;s rule."), Not(HasSubstr("differ from those"))));
    kernel.pods = KernelPods{{Scope::cache, {{{0, 1}}, {{2, 3}}}}};
    EXPECT_THAT(drawn(topology, {}, kernel),
                HasSubstr("The kernel&#39;s pods of cache differ from those computed from sysfs. The kernel "
                          "has 2 pods: CPUs 0-1; 2-3</p>"));
    kernel.pods.reset();
    kernel.pods_unread = "<no BTF>";
    EXPECT_THAT(drawn(topology, {}, kernel), HasSubstr("Computed from sysfs; &lt;no BTF&gt;</p>"));
    EXPECT_THAT(drawn(topology, {}, test::kernel_612()), HasSubstr("this kernel has no cache_shard"));
}

}  // namespace
}  // namespace wq::ctl
