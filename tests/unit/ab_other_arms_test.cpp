// SPDX-License-Identifier: LGPL-2.1-or-later
// `ab` with values of a file or with commands as arms, and `ab --restore`.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ab_rig.h"
#include "ctl/lab/left_store.h"
#include "evidence/recording.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::AbCommand;
using test::File;
using testing::HasSubstr;

TEST_F(AbCommand, ComparesValuesOfAFile) {
    const auto ran = ab(with(kValues, {"--json"}),
                        {"sh", "-c", "cat '" + tree_.path(kFile) + "' >>'" + tree_.path("runs") + "'"});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    EXPECT_EQ(report["target"], "/sys/block/sda/queue/nr_requests");
    EXPECT_EQ(report["rounds"], 3);
    EXPECT_EQ(report["arms"][0]["arm"], "16");
    EXPECT_EQ(report["arms"][1]["arm"], "32");
    EXPECT_TRUE(report["arms"][1]["pools"].is_null());
    EXPECT_EQ(tree_.read("runs").size(), 12U);
    expect_baseline();
}

TEST_F(AbCommand, ValuesWithCommasAreGivenOneByOne) {
    const auto ran = ab({"--file", "/sys/block/sda/queue/other", "--values", "ff,0", "--values", "0,ff",
                         "--values", "1", "--pairs", "1", "--json", "--export", tree_.path("pairs.csv")},
                        {"true"});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    ASSERT_EQ(report["arms"].size(), 3U);
    EXPECT_EQ(report["arms"][1]["arm"], "0,ff");
    EXPECT_TRUE(read_recording(tree_.read("pairs.csv"))) << tree_.read("pairs.csv");
    EXPECT_EQ(tree_.read("sys/block/sda/queue/other"), "none");
}

TEST_F(AbCommand, AFileOutsideOfSysAndProcIsRefused) {
    const auto ran = ab({"--file", "/etc/nr_requests", "--values", "1,2"}, {"touch", tree_.path("ran")});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_EQ(ran.err, "wq-tunectl: --file: /etc/nr_requests is not below /sys or /proc\n");
    EXPECT_FALSE(tree_.exists("ran"));
    EXPECT_FALSE(tree_.exists("run/wq-tuned/lock")) << "nothing was made";
}

TEST_F(AbCommand, SomebodyElsesValueEndsItAndStays) {
    const auto ran = ab(kValues, {"sh", "-c", "printf 99 >'" + tree_.path(kFile) + "'"});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("an external writer wrote '99'"));
    EXPECT_EQ(tree_.read(kFile), "99");
    EXPECT_FALSE(tree_.exists("run/wq-tuned/ab.json"));
}

TEST_F(AbCommand, ComparesCommands) {
    const auto ran =
        ab(with(on(), {"--json"}),
           {"sh", "-c", "[ -e '" + tree_.path("set") + "' ]; echo $? >>'" + tree_.path("runs") + "'"});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    EXPECT_TRUE(report["target"].is_null());
    EXPECT_EQ(report["arms"][0]["arm"], "reference");
    EXPECT_EQ(report["arms"][1]["arm"], "on");
    const std::string runs = tree_.read("runs");
    EXPECT_EQ(std::count(runs.begin(), runs.end(), '0'), 3);
    EXPECT_EQ(std::count(runs.begin(), runs.end(), '1'), 3);
    expect_baseline();
}

TEST_F(AbCommand, ACommandThatFailsEndsItAndIsUndone) {
    const std::string set = tree_.path("set");
    const auto ran = ab({"--arm", "on", "--do", "touch '" + set + "'; echo no such device; exit 3", "--undo",
                         "rm '" + set + "'"},
                        {"true"});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("exit code 3: no such device\n"));
    expect_baseline();
}

TEST_F(AbCommand, AnUndoThatFailsIsShoutedAboutAndLeftForRestore) {
    const std::string set = tree_.path("set");
    const std::string undo =
        "[ -e '" + tree_.path("repaired") + "' ] || { echo busy; exit 4; }; rm '" + set + "'";
    const auto ran = ab(on(undo), {"true"});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("wq-tunectl: arm on IS NOT UNDONE: '" + undo +
                                   "': exit code 4: busy; "
                                   "`wq-tunectl ab --restore` tries again\n"));
    EXPECT_TRUE(tree_.exists("set"));
    const auto next = ab(kTwo, {"touch", tree_.path("ran")});
    EXPECT_EQ(next.code, kFailure);
    EXPECT_THAT(next.err, HasSubstr("arm on: its undo failed; `wq-tunectl ab --restore` runs it again\n"));
    EXPECT_THAT(next.err, HasSubstr("settings of an earlier ab, bench or comparison could not be restored"));
    EXPECT_FALSE(tree_.exists("ran"));
    const auto again = ab({"--restore"}, {});
    EXPECT_EQ(again.code, kFailure);
    EXPECT_THAT(again.err, HasSubstr("IS NOT UNDONE"));
    tree_.add(File("repaired", ""));
    const auto restored = ab({"--restore"}, {});
    EXPECT_EQ(restored.code, kOk) << restored.err;
    EXPECT_THAT(restored.err, HasSubstr("arm on: undone"));
    expect_baseline();
    EXPECT_EQ(ab({"--restore"}, {}).code, kOk) << "nothing is left";
}

TEST_F(AbCommand, RestorePutsScopesAndFilesBackToo) {
    const auto inode = WorkqueueFs(Paths{tree_.root()}).read("kcryptd-1")->inode;
    BaselineStore store(tree_.path("run/wq-tuned/baseline.json"));
    store.put({"kcryptd-1", inode, "default", false, {"numa"}, {}, Holder::slot});
    ASSERT_TRUE(store.save());
    tree_.write(test::wq_path("kcryptd-1"), "numa\n");
    tree_.write(kFile, "32");
    ASSERT_TRUE(ab::LeftStore(tree_.path("run/wq-tuned/ab.json"))
                    .save(ab::LeftFile{tree_.path(kFile), "64", {"32"}, false}));
    const auto restored = ab({"--restore"}, {});
    EXPECT_EQ(restored.code, kOk) << restored.err;
    EXPECT_THAT(restored.err, HasSubstr("back to '64'"));
    expect_baseline();
}

TEST_F(AbCommand, UndoNamesTheCommandThatPutsTheRestBack) {
    Options options;
    options.root = tree_.root();
    const auto undone = [&] {
        testing::internal::CaptureStdout();
        EXPECT_EQ(undo(options), kOk);
        return testing::internal::GetCapturedStdout();
    };
    EXPECT_EQ(undone(), "# nothing to put back\n");
    const std::string command = "wq-tunectl --root '" + tree_.root() + "' ";
    tree_.add(File("run/wq-tuned/bench.json", "{}"));
    EXPECT_EQ(undone(), command + "bench --restore\n");
    ASSERT_TRUE(ab::LeftStore(tree_.path("run/wq-tuned/ab.json")).save(ab::LeftArm{"on", "true", false}));
    EXPECT_EQ(undone(), command + "ab --restore\n" + command + "bench --restore\n");
}

}  // namespace
}  // namespace wq::ctl
