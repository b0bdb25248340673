// SPDX-License-Identifier: LGPL-2.1-or-later
// The findings as text and as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "ctl/observe/diagnose_command.h"
#include "fake_look.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::busy_look;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The text in one line: the line breaks do not matter here.
std::string words_of(const DiagnoseLook& look) {
    std::istringstream text(diagnosis_text(diagnose(look), 80));
    std::string out, word;
    while (text >> word) out += word + " ";
    return out;
}

DiagnoseLook idle_look() {
    auto look = busy_look();
    look.profile->ran.clear();
    look.work->functions.clear();
    look.kworkers.clear();
    return look;
}

TEST(DiagnosisText, BeginsWithWhatCostsMost) {
    const auto text = diagnosis_text(diagnose(busy_look()), 80);
    EXPECT_THAT(text, StartsWith("1.20 CPUs in kcryptd_crypt [dm_crypt] of kcryptd-254:0-1 (unbound)\n"
                                 "    kworker/u9:3 0.80, kworker/u9:4 0.40, allowed on CPUs 0-7\n"
                                 "    1000 items/s, 1.5ms each from start to end; one item was seen to use"));
    const auto words = words_of(busy_look());
    EXPECT_THAT(words,
                HasSubstr("50% of the time in the queue is waiting for pool->lock (20us per item, 0.02 "
                          "CPUs spin for it). Up to 4 CPUs share a pool, and 1 other workqueue."));
    EXPECT_THAT(words,
                HasSubstr("0.25 CPUs in vmstat_update of mm_percpu_wq (per-CPU) kworker/0:1 0.25, "
                          "allowed on CPU 0 50 items/s, 5.0ms each from start to end Per-CPU work runs "
                          "on the CPU that it is queued on;"));
    EXPECT_THAT(words, HasSubstr("0.05 CPUs in tasklet_work of bh_wq (in soft interrupts)"));
    EXPECT_THAT(words, EndsWith("All kworkers used 1.05 of 7 CPUs in 2.0 s. "));
}

TEST(DiagnosisText, HasACommandToCopyWhereAFinerScopeExists) {
    constexpr auto kCommand = "\n      wq-tunectl ab --target kcryptd-254:0-1 --arms cache,smt -- COMMAND\n";
    auto look = busy_look();
    EXPECT_THAT(diagnosis_text(diagnose(look), 80), HasSubstr(kCommand));
    EXPECT_THAT(diagnosis_text(diagnose(look), 40), HasSubstr(kCommand)) << "it is not wrapped";
    auto& row = look.work->workqueues.at(0);
    row.lock = 1000;  // ns, of a mean wait of 40000 ns
    EXPECT_THAT(words_of(look), AllOf(Not(HasSubstr("wq-tunectl")), Not(HasSubstr("pool->lock"))));
    row.lock.reset();
    EXPECT_THAT(words_of(look), HasSubstr("Waiting for pool->lock is not seen here; a comparison"));
    look.dump->workqueues.at(0).max_active = 1;
    EXPECT_THAT(words_of(look), AllOf(Not(HasSubstr("wq-tunectl")), HasSubstr("One item at a time")));
}

TEST(DiagnosisText, QuotesWhatAShellWouldObey) {
    auto look = busy_look();
    look.work->workqueues.at(0).now.name = look.dump->workqueues.at(0).name = "a $(reboot)";
    EXPECT_THAT(diagnosis_text(diagnose(look), 80),
                HasSubstr("wq-tunectl ab --target 'a $(reboot)' --arms cache,smt -- COMMAND\n"));
}

TEST(DiagnosisText, SaysWhereACoarserScopeMayHelp) {
    auto look = busy_look();
    look.dump->scopes[Scope::cache] = look.dump->scopes[Scope::smt];
    EXPECT_THAT(words_of(look),
                AllOf(HasSubstr("Each core has a pool of its own, since `cache` is one core here"),
                      HasSubstr("--arms cache,numa -- COMMAND")));
}

TEST(DiagnosisText, FitsIntoEightyColumns) {
    auto look = busy_look();
    look.isolated = {6, 7};
    look.profile->isolated = {{20, "vmstat_update", 40, {{true, 6, "", 25}, {false, 0, "bash", 15}}}};
    for (unsigned cpu = 0; cpu < 128; cpu += 2) look.kworkers.at(0).cpus.add(cpu);
    for (const unsigned columns : {80U, 60U}) {
        std::istringstream text(diagnosis_text(diagnose(look), columns));
        for (std::string line; std::getline(text, line);)
            EXPECT_TRUE(line.size() <= columns || line.find("wq-tunectl ab") != std::string::npos) << line;
    }
}

TEST(DiagnosisText, OfAnIdleMachineIsOneLine) {
    EXPECT_EQ(diagnosis_text(diagnose(idle_look()), 80),
              "Nothing keeps kworkers busy: kworkers used 0.00 of 7 CPUs in 2.0 s.\n");
}

TEST(DiagnosisText, CountsTheSmallOnes) {
    auto look = busy_look();
    for (unsigned i = 0; i < 9; i++)  // in addition to 500 ms of vmstat_update in the same kworker
        look.profile->ran.push_back({20, "small" + std::to_string(i), 104, "kworker/0:1", 15'000'000, 0});
    const auto words = words_of(look);
    EXPECT_THAT(words, Not(HasSubstr("small")));
    EXPECT_THAT(words, HasSubstr("Another 9 functions used 0.05 together."));
}

TEST(DiagnosisText, SaysHowMuchNoTickFound) {
    auto look = busy_look();
    look.profile->ran.erase(look.profile->ran.begin() + 1);
    EXPECT_THAT(words_of(look), HasSubstr("in 2.0 s. Of the total, 0.25 was used by kworkers that no "
                                          "scheduler tick found running."));
}

TEST(DiagnosisText, ExplainsRescuersHogsAndWorkers) {
    auto look = busy_look();
    EXPECT_THAT(words_of(look), AllOf(Not(HasSubstr("rescuer")), Not(HasSubstr("WQ_UNBOUND"))));
    auto& crypt = look.work->workqueues.at(0).now;
    crypt.mem_reclaim = true;
    crypt.mayday = 3;
    crypt.rescued = 12;
    crypt.repatriated = 400;
    auto& percpu = look.work->workqueues.at(1).now;
    percpu.cpu_intensive = 2;
    percpu.cm_wakeup = 50;
    const auto words = words_of(look);
    EXPECT_THAT(words, HasSubstr("called the rescuer (3 calls, 12 items rescued)"));
    EXPECT_THAT(words, HasSubstr("200 times a second a kworker was brought back"));
    EXPECT_THAT(words, HasSubstr("2 items held a CPU for more than 10ms. The kernel may log \"hogged CPU ... "
                                 "consider switching to WQ_UNBOUND\""));
    EXPECT_THAT(words, HasSubstr("25 times a second another kworker was woken"));
    percpu.cm_wakeup = 5;  // of 100 items
    EXPECT_THAT(words_of(look), Not(HasSubstr("another kworker was woken")));
}

TEST(DiagnosisText, ExplainsAQuietWorkqueuesEventsToo) {
    auto look = idle_look();
    look.work->workqueues.at(1).now.cpu_intensive = 1;
    EXPECT_THAT(words_of(look), StartsWith("mm_percpu_wq (per-CPU) 1 item held a CPU for more than 10ms."));
}

TEST(DiagnosisText, NamesWhoDisturbsIsolatedCpus) {
    auto look = idle_look();
    look.isolated = {6, 7};
    look.profile->isolated = {{20,
                               "vmstat_update",
                               40,
                               {{true, 6, "", 25},
                                {false, 0, "bash", 9},
                                {false, 1, "a\nb", 4},
                                {false, 2, "c", 1},
                                {false, 4, "d", 1}}},
                              {10, "kcryptd_crypt [dm_crypt]", 2, {}}};
    const auto words = words_of(look);
    EXPECT_THAT(words,
                StartsWith("40 items of vmstat_update of mm_percpu_wq (per-CPU) on isolated CPUs 6-7 25 "
                           "queued by a timer on CPU 6 9 queued on CPU 0, where bash ran 4 queued on "
                           "CPU 1, where a?b ran and from 2 places more "));
    EXPECT_THAT(words,
                HasSubstr("2 items of kcryptd_crypt [dm_crypt] of kcryptd-254:0-1 (unbound) on isolated "
                          "CPUs 6-7 The cpumask of this workqueue and the mask of all unbound workqueues "
                          "decide where it runs."));
}

TEST(DiagnosisText, ExplainsWhoIsStuck) {
    auto look = idle_look();
    KworkerUse stuck;
    stuck.name = "kworker/3:1";
    stuck.work = "md_misc";
    stuck.stuck = true;
    stuck.sleeps_in = "blk_mq_freeze_queue_wait";
    look.kworkers.push_back(stuck);
    EXPECT_THAT(
        words_of(look),
        StartsWith("kworker/3:1 did not run at all: it sleeps in the middle of an item of md_misc It "
                   "waits in blk_mq_freeze_queue_wait. It uses no CPU but counts in the load average."));
}

TEST(DiagnosisText, SaysWhatIsMissing) {
    auto look = busy_look();
    look.missing = {"pools and scopes: BPF is denied"};
    EXPECT_THAT(diagnosis_text(diagnose(look), 80),
                EndsWith("\nNot seen: pools and scopes: BPF is denied\n"));
}

TEST(DiagnosisJson, HasAllOfIt) {
    auto look = busy_look();
    look.isolated = {6, 7};
    look.profile->isolated = {{20, "vmstat_update", 40, {{true, 6, "", 25}, {false, 0, "bash", 15}}},
                              {0, "tasklet_work", 2, {}}};
    look.missing = {"a", "b"};
    const json all = diagnosis_json(diagnose(look));
    EXPECT_EQ(all.at("seconds"), 2.0);
    EXPECT_EQ(all.at("online"), 7);
    EXPECT_NEAR(all.at("cpu").get<double>(), 1.05, 1e-9);
    EXPECT_EQ(all.at("unsampled"), 0.0);
    EXPECT_EQ(all.at("attributed"), "ticks");
    EXPECT_EQ(all.at("missing"), json({"a", "b"}));
    const json& work = all.at("work").at(0);
    EXPECT_EQ(work.at("function"), "kcryptd_crypt [dm_crypt]");
    EXPECT_EQ(work.at("workqueue"), "kcryptd-254:0-1");
    EXPECT_EQ(work.at("id"), 1);
    EXPECT_EQ(work.at("kind"), "unbound");
    EXPECT_EQ(work.at("per_second"), 1000.0);
    EXPECT_EQ(work.at("kworkers").at(0).at("name"), "kworker/u9:3");
    EXPECT_EQ(work.at("kworkers").at(0).at("allowed"), "0-7");
    EXPECT_TRUE(work.at("kworkers").at(1).at("allowed").is_null());
    const json& crypt = all.at("workqueues").at(0);
    EXPECT_EQ(crypt.at("scope"), "cache");
    EXPECT_EQ(crypt.at("finer"), json({"smt"}));
    EXPECT_EQ(crypt.at("coarser"), json::array());
    EXPECT_EQ(crypt.at("lock_share"), 0.5);
    EXPECT_EQ(crypt.at("pool_cpus"), 4);
    EXPECT_EQ(crypt.at("pool_shared"), 1);
    EXPECT_TRUE(crypt.at("cpu_hogs").is_null());
    const json& percpu = all.at("workqueues").at(1);
    EXPECT_EQ(percpu.at("kind"), "per-cpu");
    EXPECT_TRUE(percpu.at("scope").is_null());
    EXPECT_TRUE(percpu.at("pool_cpus").is_null());
    EXPECT_TRUE(percpu.at("target").is_null());
    EXPECT_EQ(percpu.at("cpu_hogs"), 0);
    EXPECT_EQ(all.at("isolated").at("cpus"), "6-7");
    const json& isolated = all.at("isolated").at("work");
    EXPECT_EQ(isolated.at(0).at("items"), 40);
    EXPECT_EQ(isolated.at(0).at("origins").at(0),
              json({{"timer", true}, {"cpu", 6}, {"task", nullptr}, {"items", 25}}));
    EXPECT_TRUE(isolated.at(1).at("workqueue").is_null());
}

}  // namespace
}  // namespace wq::ctl
