// SPDX-License-Identifier: LGPL-2.1-or-later
// status.json: whom `wq-tunectl status` believes.
#include "service/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "base/file.h"
#include "ctl/options.h"
#include "fake_machine.h"
#include "service/restorer.h"
#include "service_rig.h"
#include "temp_tree.h"

namespace wq {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kStatus = "run/wq-tuned/status.json";
constexpr const char* kBoot = "proc/sys/kernel/random/boot_id";

std::string real(const std::string& path) {
    return read_file(path).value();
}

struct Ran {
    int code;
    std::string out;
};

Ran run_status(const test::TempTree& tree, bool as_json, const std::string& target = "") {
    ctl::Options options;
    options.root = tree.root();
    options.json = as_json;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = ctl::status(options, target);
    std::fflush(stdout);
    const std::string err = testing::internal::GetCapturedStderr();
    return {code, testing::internal::GetCapturedStdout() + err};
}

// A tree whose /proc has this boot and this process, the "daemon".
class StatusFile : public testing::Test {
  protected:
    StatusFile() {
        tree_.add(test::cpu_tree({.cores = 4, .threads = 2}));
        tree_.write(kBoot, real("/proc/sys/kernel/random/boot_id"));
        tree_.write(stat(), real("/proc/self/stat"));
        tree_.write(kStatus, status_text(document_));
    }
    static std::string stat() { return "proc/" + std::to_string(::getpid()) + "/stat"; }
    [[nodiscard]] std::string state() const {
        const Ran ran = run_status(tree_, true);
        const json document = json::parse(ran.out);
        EXPECT_EQ(ran.code, document["daemon"]["state"] == "absent" ? ctl::kNoDaemon : ctl::kOk);
        return document["daemon"]["state"];
    }

    test::TempTree tree_{test::kernel_tree({test::workqueue("kcryptd"), test::workqueue("writeback")})};
    json document_ = {{"daemon", {{"state", "running"}, {"mode", "tune"}, {"version", "9.9"}}},
                      {"targets",
                       {{{"name", "kcryptd"},
                         {"kind", "unbound"},
                         {"scope", "cpu"},
                         {"effective", "cpu"},
                         {"baseline", "default"},
                         {"planned", "smt"},
                         {"state", "kept"},
                         {"reason", "it improved"}},
                        {{"name", "gone"}, {"state", "waiting"}}}}};
};

TEST_F(StatusFile, IsJoinedWithTheFilesOfTheKernel) {
    tree_.write("sys/devices/virtual/workqueue/kcryptd/affinity_scope", "smt\n");
    const json document = json::parse(run_status(tree_, true).out);
    std::map<std::string, json> targets;
    for (const json& target : document["targets"]) targets[target["name"]] = target;
    EXPECT_EQ(targets["kcryptd"]["scope"], "smt") << "what the file holds now";
    EXPECT_EQ(targets["kcryptd"]["state"], "kept");
    EXPECT_EQ(targets["writeback"]["scope"], "default") << "the daemon does not know it yet";
    for (const char* key : {"planned", "outcome", "comparison", "verdict"})
        EXPECT_EQ(targets["writeback"].at(key), nullptr) << key;
    EXPECT_EQ(targets["writeback"].at("strict"), false);
    EXPECT_EQ(targets.count("gone"), 0U);
    EXPECT_FALSE(document.contains("process"));
    EXPECT_TRUE(document["kernel"]["features"].is_object());
    const Ran text = run_status(tree_, false);
    EXPECT_EQ(text.code, ctl::kOk);
    EXPECT_THAT(text.out, HasSubstr("wq-tuned 9.9: running, mode tune\n"));
    EXPECT_THAT(text.out, testing::Not(HasSubstr("cache_shard")));
    EXPECT_THAT(run_status(tree_, false, "kcryptd").out,
                testing::AllOf(HasSubstr("it improved"), testing::Not(HasSubstr("writeback"))));
    EXPECT_EQ(run_status(tree_, false, "nothing").code, ctl::kFailure);
}

// Each row: what is done to a tree in which a daemon runs. Then none runs.
TEST_F(StatusFile, OfWhoHasEndedIsNotBelieved) {
    const auto with = [this](const char* pointer, json value) {
        json document = json::parse(status_text(document_));
        document[json::json_pointer(pointer)] = std::move(value);
        tree_.write(kStatus, document.dump());
    };
    const std::vector<std::pair<const char*, std::function<void()>>> cases = {
        {"killed", [this] { tree_.remove(stat()); }},
        {"killed, and its parent does not care",
         [this] {
             std::string zombie = real("/proc/self/stat");
             tree_.write(stat(), zombie.replace(zombie.rfind(')') + 2, 1, "Z"));
         }},
        {"the pid belongs to another process now", [&] { with("/process/start_time", 1); }},
        {"another boot", [this] { tree_.write(kBoot, "00000000-0000-0000-0000-000000000000\n"); }},
        {"cut off", [this] { tree_.write(kStatus, status_text(document_).substr(0, 100)); }},
        {"empty", [this] { tree_.write(kStatus, ""); }},
        {"deep", [this] { tree_.write(kStatus, std::string(100'000, '[')); }},
        {"too large", [this] { ASSERT_EQ(::truncate(tree_.path(kStatus).c_str(), 1L << 31), 0); }},
        {"a folder", [this] { tree_.remove(kStatus), tree_.add(test::Dir(kStatus)); }},
        {"no state", [&] { with("/daemon/state", "excellent"); }},
        {"no targets", [&] { with("/targets", 7); }},
        {"a target without a name", [&] { with("/targets/0/name", nullptr); }},
        {"by hand: a text for a number",
         [&] {
             with("/targets/0/comparison", {{"pairs", "many"}, {"effect_percent", 1}});
         }},
        {"stopped", [this] { ASSERT_TRUE(restore_after_exit({tree_.root()})); }},
    };
    for (const auto& [what, change] : cases) {
        SCOPED_TRACE(what);
        tree_.remove(kStatus);
        tree_.write(kStatus, status_text(document_));
        tree_.write(stat(), real("/proc/self/stat"));
        tree_.write(kBoot, real("/proc/sys/kernel/random/boot_id"));
        ASSERT_EQ(state(), "running");
        change();
        const Ran text = run_status(tree_, false);
        EXPECT_EQ(text.code, ctl::kNoDaemon);
        EXPECT_THAT(text.out, HasSubstr(": not running, mode "));
    }
}

// However the file is damaged, the answer is a status: of a daemon, or that none runs.
TEST_F(StatusFile, ThatIsDamagedIsNeverAnError) {
    document_["targets"][0]["comparison"] = {{"reference", "cache"},
                                             {"candidate", "smt"},
                                             {"pairs", 12},
                                             {"effect_percent", -3.5},
                                             {"next_pair", 1700000000}};
    document_["targets"][0]["verdict"] = {{"verdict", "improved"}, {"candidate", "smt"}, {"pairs", 16}};
    document_["masks"] = {{{"name", "kcryptd"}, {"cpumask", "0-3"}}};
    document_["daemon"]["experiments"] = {{"measuring", 1}, {"next_pair", nullptr}};
    document_["daemon"]["policy"] = {{"state", "broken"}, {"since", 1700000000}, {"expired", {"a:1"}}};
    tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
    const std::string whole = status_text(document_);
    std::mt19937 random(36);
    const std::string bytes = "0\"[]{}:,x-\xff";
    for (int i = 0; i < 100; i++) {
        std::string text = whole;
        for (unsigned n = random() % 3 + 1; n > 0; n--) {
            const std::size_t at = random() % text.size();
            random() % 3 == 0 ? text.erase(at, random() % 8)
                              : text.replace(at, 1, 1, bytes[random() % bytes.size()]);
        }
        tree_.write(kStatus, text);
        SCOPED_TRACE(text);
        const Ran ran = run_status(tree_, i % 2 == 0);
        ASSERT_THAT(ran.code, testing::AnyOf(ctl::kOk, ctl::kNoDaemon));
    }
}

using StatusOfDaemon = test::ServiceTest;

// What could not be written is written once it can be: at the next event, not at the next change.
TEST_F(StatusOfDaemon, AFileThatCouldNotBeWrittenIsWrittenLater) {
    tree_.add(test::Dir(std::string(kStatus) + "/in the way"));
    test::Daemon daemon(tree_, test::usr1_is(Udev::Change::workqueue));
    ASSERT_TRUE(logged("status.json"));
    tree_.remove(kStatus);
    const auto since = std::chrono::steady_clock::now();
    daemon.send(SIGUSR1);
    EXPECT_TRUE(eventually([&] { return tree_.exists(kStatus); }));
    EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(20)) << "counts may take 30 s";
}

}  // namespace
}  // namespace wq
