// SPDX-License-Identifier: LGPL-2.1-or-later
// The findings as text and as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "ctl/observe/diagnosis.h"
#include "fake_look.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::busy_look;
using test::idle_look;
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

TEST(DiagnosisText, IsPlain) {
    EXPECT_THAT(diagnosis_text(diagnose(busy_look()), 80),
                StartsWith("1.20 CPUs in kcryptd_crypt [dm_crypt] of kcryptd-254:0-1 (unbound)\n"
                           "    kworker/u9:3 0.80, kworker/u9:4 0.40, allowed on CPUs 0-7\n"
                           "    1000 items/s, 1.5ms each from start to end; one item was seen to use"));
    EXPECT_EQ(
        words_of(busy_look()),
        "1.20 CPUs in kcryptd_crypt [dm_crypt] of kcryptd-254:0-1 (unbound) kworker/u9:3 0.80, kworker/u9:4 "
        "0.40, allowed on CPUs 0-7 1000 items/s, 1.5ms each from start to end; one item was seen to use "
        "34ms of CPU without a sleep 50% of the time in the queue is waiting for pool->lock (20us per "
        "item, 0.02 CPUs spin for it). Up to 4 CPUs share a pool, and 1 other workqueue. A finer scope "
        "may shorten this; a comparison under your load tells: wq-tunectl ab --target kcryptd-254:0-1 "
        "--arms cache,smt -- COMMAND 0.25 CPUs in vmstat_update of mm_percpu_wq (per-CPU) kworker/0:1 "
        "0.25, allowed on CPU 0 50 items/s, 5.0ms each from start to end Per-CPU work runs on the CPU "
        "that it is queued on; affinity scopes and the masks of unbound workqueues do not reach it. "
        "0.05 CPUs in tasklet_work of bh_wq (in soft interrupts) 5 items/s, 10ms each from start to end "
        "It runs in soft interrupts of the CPU that it is queued on, and no kworker shows it. All "
        "kworkers used 1.05 of 7 CPUs in 2.0 s. ");
    EXPECT_EQ(diagnosis_text(diagnose(idle_look()), 80),
              "Nothing keeps kworkers busy: kworkers used 0.00 of 7 CPUs in 2.0 s.\n");
}

struct Case {
    void (*change)(DiagnoseLook&);
    std::vector<const char*> has, has_not;
};

TEST(DiagnosisText, ExplainsWhatWasFound) {
    const Case cases[] = {
        {[](auto& look) { look.work->workqueues[0].lock = 1000; },  // ns, of a mean wait of 40000 ns
         {},
         {"wq-tunectl", "pool->lock"}},
        {[](auto& look) { look.work->workqueues[0].lock.reset(); },
         {"Waiting for pool->lock is not seen here; a comparison"},
         {}},
        {[](auto& look) { look.dump->workqueues[0].max_active = 1; }, {"One item at a time"}, {"wq-tunectl"}},
        {[](auto& look) { look.dump->scopes[Scope::cache] = look.dump->scopes[Scope::smt]; },
         {"Each core has a pool of its own, since `cache` is one core here", "--arms cache,numa -- COMMAND"},
         {}},
        {[](auto& look) {  // in addition to 500 ms of vmstat_update in the same kworker
             for (unsigned i = 0; i < 9; i++)
                 look.profile->ran.push_back(
                     {20, "small" + std::to_string(i), 104, "kworker/0:1", 15'000'000, 0});
         },
         {"Another 9 functions used 0.05 together."},
         {"small"}},
        {[](auto& look) { look.profile->ran.erase(look.profile->ran.begin() + 1); },
         {"in 2.0 s. Of the total, 0.25 was used by kworkers that no scheduler tick found running."},
         {}},
        {[](auto& look) {
             auto& crypt = look.work->workqueues[0].now;
             crypt.mem_reclaim = true;
             crypt.mayday = 3;
             crypt.rescued = 12;
             crypt.repatriated = 400;
             auto& percpu = look.work->workqueues[1].now;
             percpu.cpu_intensive = 2;
             percpu.cm_wakeup = 50;
         },
         {"called the rescuer (3 calls, 12 items rescued)", "200 times a second a kworker was brought back",
          "2 items held a CPU for more than 10ms. The kernel may log \"hogged CPU ... consider switching to "
          "WQ_UNBOUND\"",
          "25 times a second another kworker was woken"},
         {}},
        {[](auto& look) { look.work->workqueues[1].now.cm_wakeup = 5; },  // of 100 items
         {},
         {"another kworker was woken"}},
        {[](auto& look) {
             look = idle_look();
             look.work->workqueues[1].now.cpu_intensive = 1;
         },
         {"mm_percpu_wq (per-CPU) 1 item held a CPU for more than 10ms."},
         {}},
        {[](auto& look) {
             look = idle_look();
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
         },
         {"40 items of vmstat_update of mm_percpu_wq (per-CPU) on isolated CPUs 6-7 25 queued by a timer on "
          "CPU 6 9 queued on CPU 0, where bash ran 4 queued on CPU 1, where a?b ran and from 2 places more ",
          "2 items of kcryptd_crypt [dm_crypt] of kcryptd-254:0-1 (unbound) on isolated CPUs 6-7 The cpumask "
          "of this workqueue and the mask of all unbound workqueues decide where it runs."},
         {}},
        {[](auto& look) {
             look = idle_look();
             look.kworkers.push_back(test::stuck_kworker());
         },
         {"kworker/3:1 did not run at all: it sleeps in the middle of an item of md_misc It waits in "
          "blk_mq_freeze_queue_wait. It uses no CPU but counts in the load average."},
         {}},
        {[](auto& look) { look.missing = {"pools and scopes: BPF is denied"}; },
         {"Not seen: pools and scopes: BPF is denied "},
         {}},
    };
    for (const Case& one : cases) {
        auto look = busy_look();
        one.change(look);
        const auto words = words_of(look);
        for (const char* text : one.has) EXPECT_THAT(words, HasSubstr(text));
        for (const char* text : one.has_not) EXPECT_THAT(words, Not(HasSubstr(text)));
    }
}

TEST(DiagnosisText, HasACommandToCopyThatIsQuotedAndNotWrapped) {
    constexpr auto kCommand = "\n      wq-tunectl ab --target 'a $(reboot)' --arms cache,smt -- COMMAND\n";
    auto look = busy_look();
    look.work->workqueues.at(0).now.name = look.dump->workqueues.at(0).name = "a $(reboot)";
    for (const unsigned columns : {80U, 40U})
        EXPECT_THAT(diagnosis_text(diagnose(look), columns), HasSubstr(kCommand));
}

TEST(DiagnosisText, FitsIntoItsColumns) {
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

TEST(DiagnosisJson, HasAllOfIt) {
    auto look = busy_look();
    look.isolated = {6, 7};
    look.profile->isolated = {{20, "vmstat_update", 40, {{true, 6, "", 25}, {false, 0, "bash", 15}}},
                              {0, "tasklet_work", 2, {}}};
    look.kworkers.push_back(test::stuck_kworker());
    look.missing = {"a", "b"};
    json all = diagnosis_json(diagnose(look));
    EXPECT_NEAR(all.at("cpu").get<double>(), 1.05, 1e-9);
    json work = all.at("work").at(0), crypt = all.at("workqueues").at(0), percpu = all.at("workqueues").at(1);
    for (const char* key : {"cpu", "work", "workqueues"}) all.erase(key);
    EXPECT_EQ(all, json::parse(R"({"seconds": 2.0, "online": 7, "unsampled": 0.0, "attributed": "ticks",
        "stuck": [{"name": "kworker/3:1", "work": "md_misc", "sleeps_in": "blk_mq_freeze_queue_wait"}],
        "isolated": {"cpus": "6-7", "work": [
            {"workqueue": "mm_percpu_wq", "kind": "per-cpu", "function": "vmstat_update", "items": 40,
             "origins": [{"timer": true, "cpu": 6, "task": null, "items": 25},
                         {"timer": false, "cpu": 0, "task": "bash", "items": 15}]},
            {"workqueue": null, "kind": null, "function": "tasklet_work", "items": 2, "origins": []}]},
        "missing": ["a", "b"]})"));
    EXPECT_NEAR(work.at("cpu").get<double>(), 1.2, 1e-9);
    work.erase("cpu");
    for (json& kworker : work.at("kworkers")) kworker.erase("cpu");
    EXPECT_EQ(work, json::parse(R"({"function": "kcryptd_crypt [dm_crypt]", "workqueue": "kcryptd-254:0-1",
        "id": 1, "kind": "unbound", "per_second": 1000.0, "mean_ns": 1500000.0, "longest_ns": 34000000.0,
        "kworkers": [{"name": "kworker/u9:3", "allowed": "0-7"}, {"name": "kworker/u9:4", "allowed": null}]})"));
    for (json* one : {&crypt, &percpu}) {
        one->erase("cpu");
        one->erase("lock_cpu");
    }
    EXPECT_EQ(crypt, json::parse(R"({"name": "kcryptd-254:0-1", "id": 1, "kind": "unbound", "max_active": 64,
        "scope": "cache", "finer": ["smt"], "coarser": [], "target": "kcryptd-254:0-1", "pool_cpus": 4,
        "pool_shared": 1, "lock_share": 0.5, "lock_ns": 20000.0, "items": 2000, "cpu_hogs": null,
        "cm_wakeups": null, "repatriated": 0, "mayday": null, "rescued": null})"));
    EXPECT_EQ(percpu, json::parse(R"({"name": "mm_percpu_wq", "id": 2, "kind": "per-cpu", "max_active": null,
        "scope": null, "finer": [], "coarser": [], "target": null, "pool_cpus": null, "pool_shared": null,
        "lock_share": null, "lock_ns": null, "items": 100, "cpu_hogs": 0, "cm_wakeups": 0,
        "repatriated": null, "mayday": null, "rescued": null})"));
}

}  // namespace
}  // namespace wq::ctl
