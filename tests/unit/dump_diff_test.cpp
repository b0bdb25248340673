// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the dumps of two kernels.
#include "ctl/observe/dump_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ordered_json old_kernel() {
    return ordered_json::parse(R"({
        "kernel": {"release": "6.12.107"}, "default_scope": "cache",
        "masks": {"unbound": "0-3", "requested": "0-3", "isolated": ""},
        "scopes": [{"scope": "cache", "nr_pods": 1}, {"scope": "system", "nr_pods": 1}],
        "pools": [],
        "workqueues": [
            {"name": "writeback", "kind": "unbound", "flags": ["unbound", "sysfs"], "scope": "default",
             "effective": "cache", "strict": false, "nice": 0, "cpus": "0-3",
             "pools": {"0": 8, "1": 8, "2": 8, "3": 8}, "max_active": 256},
            {"name": "events", "kind": "per-cpu", "flags": ["percpu"], "pools": {"0": 0, "1": 2},
             "max_active": 256},
            {"name": "events", "kind": "per-cpu", "flags": ["percpu", "highpri"], "pools": {"0": 1, "1": 3},
             "max_active": 256},
            {"name": "old_wq", "kind": "per-cpu", "flags": ["percpu"], "pools": {"0": 0}, "max_active": 1}]})");
}

// The pools have different ids; writeback has one pool for each half of the CPUs.
ordered_json new_kernel() {
    auto out = old_kernel();
    out["kernel"]["release"] = "7.2.13";
    out["default_scope"] = "cache_shard";
    out["scopes"].push_back({{"scope", "cache_shard"}, {"nr_pods", 2}});
    auto& all = out["workqueues"];
    all[0]["effective"] = "cache_shard";
    all[0]["pools"] = {{"0", 20}, {"1", 20}, {"2", 21}, {"3", 21}};
    all[1]["pools"] = {{"0", 4}, {"1", 6}};
    all[2]["kind"] = "unbound";
    all[2]["flags"] = {"unbound", "highpri"};
    all[2]["scope"] = "smt";
    all[3]["name"] = "new_wq";
    return out;
}

TEST(DumpDiff, FindsWhatChangedBetweenKernels) {
    const auto diff = diff_dumps(old_kernel(), new_kernel());
    ASSERT_TRUE(diff);
    const json all = dump_diff_json(*diff);
    EXPECT_EQ(all.at("kernel"), json::parse(R"([{"what": "release", "before": "6.12.107", "after": "7.2.13"},
                              {"what": "default scope", "before": "cache", "after": "cache_shard"},
                              {"what": "pods of cache_shard", "before": "", "after": "2"}])"));
    ASSERT_THAT(all.at("workqueues"), SizeIs(2)) << "the first events differs in its pools' ids alone";
    EXPECT_EQ(all.at("workqueues")[0], json::parse(R"({"name": "events", "changes": [
                  {"what": "kind", "before": "per-cpu", "after": "unbound"},
                  {"what": "flags", "before": "percpu highpri", "after": "unbound highpri"},
                  {"what": "scope", "before": "", "after": "smt"}]})"));
    EXPECT_EQ(all.at("workqueues")[1], json::parse(R"json({"name": "writeback", "changes": [
                  {"what": "scope", "before": "default (cache)", "after": "default (cache_shard)"},
                  {"what": "pools", "before": "0-3", "after": "0-1 2-3"}]})json"));
    EXPECT_THAT(diff->gone, ElementsAre("old_wq"));
    EXPECT_THAT(diff->added, ElementsAre("new_wq"));
}

TEST(DumpDiff, IsPlainText) {
    EXPECT_EQ(dump_diff_text(*diff_dumps(old_kernel(), new_kernel()), 80, false),
              "release: 6.12.107 -> 7.2.13\n"
              "default scope: cache -> cache_shard\n"
              "pods of cache_shard: - -> 2\n"
              "\n"
              "WORKQUEUE  WHAT   BEFORE -> NOW\n"
              "events     kind   per-cpu -> unbound\n"
              "           flags  percpu highpri -> unbound highpri\n"
              "           scope  - -> smt\n"
              "writeback  scope  default (cache) -> default (cache_shard)\n"
              "           pools  0-3 -> 0-1 2-3\n"
              "\n"
              "gone: old_wq\n"
              "new: new_wq\n");
    EXPECT_EQ(dump_diff_text(*diff_dumps(old_kernel(), old_kernel()), 80, false), "no difference\n");
}

TEST(DumpDiff, NeedsTwoDumps) {
    EXPECT_FALSE(diff_dumps(old_kernel(), ordered_json::object()));
    auto broken = old_kernel();
    broken["workqueues"][0]["pools"] = {{"first", 8}};
    EXPECT_FALSE(diff_dumps(broken, old_kernel()));
    broken = old_kernel();
    broken["workqueues"][0]["name"] = 7;
    EXPECT_FALSE(diff_dumps(broken, old_kernel()));
}

TEST(DumpFile, HasTheWorkqueuesThatAreAskedFor) {
    test::TempTree tree;
    tree.write("old.json", old_kernel().dump());
    const auto all = read_dump_file(tree.path("old.json"), {});
    ASSERT_TRUE(all);
    EXPECT_THAT(all->at("workqueues"), SizeIs(4));
    const auto some = read_dump_file(tree.path("old.json"), {"events"});
    ASSERT_TRUE(some);
    EXPECT_THAT(some->at("workqueues"), SizeIs(2));
}

TEST(DumpFile, OfSomethingElseIsAnErrorThatNamesIt) {
    test::TempTree tree;
    for (const char* text : {"", "{", "[]", "7", "{}", R"({"workqueues": 7})"}) {
        tree.write("old.json", text);
        const auto read = read_dump_file(tree.path("old.json"), {});
        ASSERT_FALSE(read) << text;
        EXPECT_THAT(read.error().text, HasSubstr("old.json: not the output of"));
    }
    EXPECT_THAT(read_dump_file(tree.path("none.json"), {}).error().text, HasSubstr("none.json"));
}

}  // namespace
}  // namespace wq::ctl
