// SPDX-License-Identifier: LGPL-2.1-or-later
// diagnose(): from the samples of a look to findings, as text and as JSON.
#include <gmock/gmock.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "ctl/observe/diagnosis.h"
#include "fake_look.h"
#include "run_command.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::busy_look;
using test::idle_look;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

// ---- diagnosis

// The document without the lists, of which each case looks at some.
json found_in(const DiagnoseLook& look) {
    return json(diagnose(look));
}

json named(const json& found, const std::string& name) {
    for (const json& one : found.at("workqueues"))
        if (one.at("name") == name) return one;
    throw std::runtime_error("no workqueue " + name);
}

// CPU time by "function of workqueue", the most costly first.
std::vector<std::pair<std::string, double>> costs(const json& found) {
    std::vector<std::pair<std::string, double>> out;
    for (const json& one : found.at("work"))
        out.emplace_back((one.at("function").is_null() ? "?" : one.at("function").get<std::string>()) +
                             " of " + one.at("workqueue").get<std::string>(),
                         one.at("cpu"));
    return out;
}

// busy_look() without the samples of kworkers.
DiagnoseLook unsampled_look() {
    auto look = busy_look();
    look.ran.reset();
    return look;
}

TEST(Diagnosis, SharesOutTheExactTimeOfATaskByItsSamples) {
    auto look = busy_look();
    auto& ran = *look.ran;
    ran[0].cpu_ns = 30'000'000;  // most ticks were lost
    ran.push_back({20, "other", 103, "kworker/u9:3", 10'000'000, 0});
    ran.push_back({99, "gone", 106, "kworker/u9:6", 10'000'000, 0});
    ran.erase(ran.begin() + 1);
    const json found = found_in(look);
    EXPECT_THAT(costs(found),
                testing::ElementsAre(Pair("kcryptd_crypt [dm_crypt] of kcryptd-254:0-1", DoubleNear(1, 1e-9)),
                                     Pair("other of mm_percpu_wq", DoubleNear(0.2, 1e-9)),
                                     Pair("tasklet_work of bh_wq", 0.05)));
    EXPECT_NEAR(found.at("unsampled"), 0.25, 1e-9) << "no tick found kworker/0:1";
}

TEST(Diagnosis, HintsAtNoScopeWhereNoneCanHelpAndNamesNoTargetThatAbRefuses) {
    constexpr auto kName = "kcryptd-254:0-1";
    const struct {
        const char* what;
        void (*change)(DiagnoseLook&, DumpedWorkqueue&);
        std::size_t finer;
        const char* target;
        json coarser = json::array();
    } cases[] = {
        {"as it is", [](auto&, auto&) {}, 1, kName},
        {"ordered", [](auto&, auto& wq) { wq.kind = "ordered"; }, 0, ""},
        {"max_active 1", [](auto&, auto& wq) { wq.max_active = 1; }, 0, ""},
        {"smt", [](auto&, auto& wq) { wq.attrs->effective = Scope::smt; }, 0, kName},
        {"unknown scope", [](auto&, auto& wq) { wq.attrs->effective.reset(); }, 0, kName},
        {"one CPU, one pool", [](auto&, auto& wq) { wq.attrs->cpus = {5}; }, 0, kName},
        {"no dump", [](auto& look, auto&) { look.dump.reset(); }, 0, ""},
        {"each core is a cache, and `system` is as `numa`",
         [](auto& look, auto&) { look.dump->scopes[Scope::cache] = look.dump->scopes[Scope::smt]; },
         0,
         kName,
         {"numa"}},
        {"somebody chose smt",
         [](auto& look, auto& wq) {
             look.dump->scopes[Scope::cache] = look.dump->scopes[Scope::smt];
             wq.attrs->effective = Scope::smt;
         },
         0, kName},
        {"only by the default",
         [](auto& look, auto&) {
             look.work.workqueues.at(0).now.in_sysfs = false;
             look.work.workqueues.at(0).now.follows_default = true;
         },
         1, "@default"},
        {"not at all", [](auto& look, auto&) { look.work.workqueues.at(0).now.in_sysfs = false; }, 1, ""},
        {"two of the name", [](auto& look, auto& wq) { look.dump->workqueues.push_back(wq); }, 0, ""},
    };
    for (const auto& one : cases) {
        auto look = busy_look();
        one.change(look, look.dump->workqueues.at(0));
        const json found = found_in(look);
        EXPECT_THAT(named(found, kName).at("finer"), testing::SizeIs(one.finer)) << one.what;
        EXPECT_EQ(named(found, kName).at("target"), *one.target ? json(one.target) : json()) << one.what;
        EXPECT_EQ(named(found, kName).at("coarser"), one.coarser) << one.what;
    }
}

TEST(Diagnosis, CountsWhatHappenedMeanwhileOnly) {
    auto look = busy_look();
    auto& before = look.work.workqueues.at(0).before;
    auto& now = look.work.workqueues.at(0).now;
    before.mem_reclaim = now.mem_reclaim = true;
    before.mayday = 5, now.mayday = 8;
    before.rescued = 10, now.rescued = 10;
    before.repatriated = 1, now.repatriated = 3;
    const auto of = [&](const char* key) { return named(found_in(look), now.name).at(key); };
    EXPECT_EQ(of("mayday"), 3);
    EXPECT_EQ(of("rescued"), 0);
    EXPECT_EQ(of("repatriated"), 2);
    EXPECT_TRUE(of("cpu_hogs").is_null()) << "the kernel counts none of an unbound workqueue";
    before.in_flight = now.in_flight = 4;
    now.started = before.started;
    now.completed = before.completed;
    EXPECT_EQ(of("stalled"), 4);
    now.completed++;
    EXPECT_EQ(of("stalled"), 0) << "one ended";
    now.completed--;
    now.started++;
    EXPECT_EQ(of("stalled"), 0) << "one began";
    now.started--;
    before.in_flight = 0;
    EXPECT_EQ(of("stalled"), 0) << "they were queued just now";
    look.work.workqueues.at(0).reset = true;
    EXPECT_TRUE(of("mayday").is_null());
    EXPECT_TRUE(of("stalled").is_null());
}

TEST(Diagnosis, DividesTheKernelsStatisticsWithoutSamples) {
    auto look = unsampled_look();
    FunctionRow other = look.work.functions.at(0);
    other.function = "kcryptd_io_read_work [dm_crypt]";
    other.busy = 0.5;
    look.work.functions.push_back(other);  // in addition to 1.5 busy workers of the first
    const json found = found_in(look);
    EXPECT_EQ(found.at("attributed"), "statistics");
    ASSERT_GE(found.at("work").size(), 2U);
    EXPECT_THAT(costs(found)[0], Pair("kcryptd_crypt [dm_crypt] of kcryptd-254:0-1", DoubleNear(0.9, 1e-9)));
    EXPECT_THAT(costs(found)[1].second, DoubleNear(0.3, 1e-9));
}

TEST(Diagnosis, BlamesNoFunctionForMoreThanTheTimeThatItTook) {
    auto look = unsampled_look();
    look.work.functions.at(0).busy = 0.2;  // kcryptd used 1.2 CPUs: another item still runs
    const json found = found_in(look);
    EXPECT_THAT(costs(found), testing::ElementsAre(
                                  Pair("? of kcryptd-254:0-1", DoubleNear(1, 1e-9)),
                                  Pair("vmstat_update of mm_percpu_wq", DoubleNear(0.25, 1e-9)),
                                  Pair("kcryptd_crypt [dm_crypt] of kcryptd-254:0-1", DoubleNear(0.2, 1e-9)),
                                  Pair("tasklet_work of bh_wq", 0.05)));
    EXPECT_TRUE(found.at("work")[0].at("mean_ns").is_null());
    EXPECT_NEAR(named(found, "kcryptd-254:0-1").at("cpu"), 1.2, 1e-9);
    look.work.functions.clear();
    EXPECT_THAT(costs(found_in(look))[0], Pair("? of kcryptd-254:0-1", DoubleNear(1.2, 1e-9)));
}

// What the per-CPU workqueue waited for its lock: a mean of LOCK ns over ITEMS.
void compare_locks(DiagnoseLook& look, double lock, std::uint64_t items) {
    look.work.workqueues[1].lock = lock;
    look.work.workqueues[1].timed = items;
}

TEST(Diagnosis, ContentionIsTheWaitAboveTheLowestOfOthers) {
    const struct {
        const char* what;
        double other;  // mean wait of another workqueue
        std::uint64_t items;
        std::optional<double> ns, share;  // of 40 us in the queue and 1.5 ms from start to end
    } cases[] = {
        {"more than others", 5000, 20, 15'000, 15e3 / 1.54e6},
        {"as much", 20'000, 20, 0, 0},
        {"less", 30'000, 1000, 0, 0},
        {"others had too few", 5000, 19, {}, {}},
    };
    for (const auto& one : cases) {
        auto look = busy_look();
        compare_locks(look, one.other, one.items);
        const json found = named(found_in(look), "kcryptd-254:0-1");
        const auto is = [](const std::optional<double>& value) { return value ? json(*value) : json(); };
        EXPECT_EQ(found.at("contention_ns"), is(one.ns)) << one.what;
        EXPECT_EQ(found.at("contention_share"), is(one.share)) << one.what;
    }
}

// ---- diagnose text

// The text in one line: the line breaks do not matter here.
std::string words_of(const DiagnoseLook& look) {
    std::istringstream text(diagnosis_text(diagnose(look), look, 80));
    std::string out, word;
    while (text >> word) out += word + " ";
    return out;
}

TEST(DiagnosisText, IsPlain) {
    EXPECT_EQ(
        words_of(busy_look()),
        "1.20 CPUs in kcryptd_crypt [dm_crypt] of kcryptd-254:0-1 (unbound) kworker/u9:3 0.80, kworker/u9:4 "
        "0.40, allowed on CPUs 0-7 1000 items/s, 1.5ms each from start to end; one item was seen to use "
        "34ms of CPU without a sleep 50% of the time in the queue is waiting for pool->lock (20us per "
        "item, 0.02 CPUs spin for it). Up to 4 CPUs share a pool, and 1 other workqueue. Contention is "
        "not known: no other workqueue had enough items to compare with. A finer scope "
        "may shorten this; a comparison under your load tells: wq-tunectl ab --target kcryptd-254:0-1 "
        "--arms cache,smt -- COMMAND 0.25 CPUs in vmstat_update of mm_percpu_wq (per-CPU) kworker/0:1 "
        "0.25, allowed on CPU 0 50 items/s, 5.0ms each from start to end Per-CPU work runs on the CPU "
        "that it is queued on; affinity scopes and the masks of unbound workqueues do not reach it. "
        "0.05 CPUs in tasklet_work of bh_wq (in soft interrupts) 5 items/s, 10ms each from start to end "
        "It runs in soft interrupts of the CPU that it is queued on, and no kworker shows it. All "
        "kworkers used 1.05 of 7 CPUs in 2.0 s. ");
    EXPECT_EQ(diagnosis_text(diagnose(idle_look()), idle_look(), 80),
              "Nothing keeps kworkers busy: kworkers used 0.00 of 7 CPUs in 2.0 s.\n");
}

TEST(DiagnosisText, ExplainsWhatWasFound) {
    const struct {
        void (*change)(DiagnoseLook&);
        std::vector<const char*> has, has_not = {};
    } cases[] = {
        {[](auto& look) { look.work.workqueues[0].lock = 1000; },  // ns, of a mean wait of 40000 ns
         {},
         {"wq-tunectl", "pool->lock"}},
        {[](auto& look) { look.work.workqueues[0].lock.reset(); },
         {"Waiting for pool->lock is not seen here; a comparison"}},
        {[](auto& look) { compare_locks(look, 5000, 20); },  // of 1540 us from queueing to the end
         {"Contention: 15us per item above the lowest wait for pool->lock seen here, under 1% of its "
          "latency: ",
          "50% of the time in the queue is waiting for pool->lock"},
         {"wq-tunectl ab", "not known"}},
        {[](auto& look) {
             compare_locks(look, 5000, 20);
             look.work.functions[0].mean = 1e5;
         },
         {"seen here, 11% of its latency.", "A finer scope may shorten this"},
         {"hardly"}},
        {[](auto& look) { look.work.workqueues[1].now.name = "inode_switch_wbs"; },
         {"so a scope does not help"}},
        {[](auto& look) { look.dump->workqueues[0].max_active = 1; }, {"One item at a time"}, {"wq-tunectl"}},
        {[](auto& look) { look.dump->scopes[Scope::cache] = look.dump->scopes[Scope::smt]; },
         {"Each core has a pool of its own, since `cache` is one core here", "--arms cache,numa -- COMMAND"}},
        {[](auto& look) {  // in addition to 500 ms of vmstat_update in the same kworker
             for (unsigned i = 0; i < 9; i++)
                 look.ran->push_back({20, "small" + std::to_string(i), 104, "kworker/0:1", 15'000'000, 0});
         },
         {"Another 9 functions used 0.05 together."},
         {"small"}},
        {[](auto& look) { look.ran->erase(look.ran->begin() + 1); },
         {"in 2.0 s. Of the total, 0.25 was used by kworkers that no scheduler tick found running."}},
        {[](auto& look) {
             auto& row = look.work.workqueues[0];
             std::tie(row.q50, row.q90, row.q95, row.q99) = std::tuple(900, 2e3, 3e3, 2e6);
             row.now.mem_reclaim = true;
             std::tie(row.now.mayday, row.now.rescued, row.now.repatriated) = std::tuple(3, 12, 400);
             look.work.workqueues[1].now.cpu_intensive = 2;
             look.work.workqueues[1].now.cm_wakeup = 50;
         },
         {"queue_work() takes its callers 900ns (p50), 2.0us (p90), 3.0us (p95), 2.0ms (p99).",
          "called the rescuer (3 calls, 12 items rescued)", "200 times a second a kworker was brought back",
          "2 items held a CPU for more than 10ms. The kernel may log", "25 times a second another kworker"}},
        {[](auto& look) { look.work.workqueues[1].now.cm_wakeup = 5; },  // of 100 items
         {},
         {"another kworker was woken"}},
        {[](auto& look) {
             look = idle_look();
             auto& row = look.work.workqueues[0];
             row.now.started = row.before.started;
             row.now.completed = row.before.completed;
             row.before.in_flight = 2;
             row.now.in_flight = 3;
             look.work.workqueues[1].now.cpu_intensive = 1;
             look.bypassed["kcryptd-254:0-1"].reads = true;
             look.isolated = {6, 7};
             look.on_isolated = {{"events", 1}, {"idle", 0}, {"mm_percpu_wq", 40}};
             look.kworkers.push_back(test::stuck_kworker());
             look.missing = {"pools and scopes: BPF is denied"};
         },
         {"kcryptd-254:0-1 (unbound) 3 items are in flight, and none began or ended meanwhile.",
          "mm_percpu_wq (per-CPU) 1 item held a CPU for more than 10ms.",
          "In its dm-crypt mapping reads bypass this workqueue",
          "On the isolated CPUs 6-7 per-CPU work started 1 item of events, 40 items of mm_percpu_wq. Each "
          "was",
          "kworker/3:1 did not run at all: it sleeps in the middle of an item of md_misc It waits in "
          "blk_mq_fr",
          "Not seen: pools and scopes: BPF is denied "},
         {"idle"}},
    };
    for (const auto& one : cases) {
        auto look = busy_look();
        one.change(look);
        const auto words = words_of(look);
        for (const char* text : one.has) EXPECT_THAT(words, HasSubstr(text));
        for (const char* text : one.has_not) EXPECT_THAT(words, testing::Not(HasSubstr(text)));
    }
}

TEST(DiagnosisText, HasACommandToCopyThatIsQuotedAndNotWrapped) {
    constexpr auto kCommand = "\n      wq-tunectl ab --target 'a $(reboot)' --arms cache,smt -- COMMAND\n";
    auto look = busy_look();
    look.work.workqueues.at(0).now.name = look.dump->workqueues.at(0).name = "a $(reboot)";
    for (const unsigned columns : {80U, 40U})
        EXPECT_THAT(diagnosis_text(diagnose(look), look, columns), HasSubstr(kCommand));
}

TEST(DiagnosisJson, HasAllOfIt) {
    auto look = busy_look();
    look.isolated = {6, 7};
    look.on_isolated = {{"events", 0}, {"mm_percpu_wq", 40}};
    look.kworkers.push_back(test::stuck_kworker());
    look.missing = {"a", "b"};
    look.bypassed["kcryptd-254:0-1"].writes = true;
    json all = found_in(look);
    EXPECT_NEAR(all.at("cpu").get<double>(), 1.05, 1e-9);
    json work = all.at("work").at(0), crypt = all.at("workqueues").at(0), percpu = all.at("workqueues").at(1);
    for (const char* key : {"cpu", "work", "workqueues"}) all.erase(key);
    EXPECT_EQ(all, json::parse(R"({"seconds": 2.0, "online": 7, "unsampled": 0.0, "attributed": "ticks",
        "stuck": [{"name": "kworker/3:1", "work": "md_misc", "sleeps_in": "blk_mq_freeze_queue_wait"}],
        "bypassed": [{"workqueue": "kcryptd-254:0-1", "options": ["no_write_workqueue"]}],
        "isolated": {"cpus": "6-7", "work": [{"workqueue": "mm_percpu_wq", "items": 40}]},
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
        "pool_shared": 1, "lock_share": 0.5, "lock_ns": 20000.0, "contention_ns": null, "contention_share": null,
        "enqueue_ns": null, "items": 2000, "cpu_hogs": null,
        "cm_wakeups": null, "repatriated": 0, "mayday": null, "rescued": null, "stalled": 0})"));
    EXPECT_EQ(percpu, json::parse(R"({"name": "mm_percpu_wq", "id": 2, "kind": "per-cpu", "max_active": null,
        "scope": null, "finer": [], "coarser": [], "target": null, "pool_cpus": null, "pool_shared": null,
        "lock_share": null, "lock_ns": null, "contention_ns": null, "contention_share": null,
        "enqueue_ns": null, "items": 100, "cpu_hogs": 0, "cm_wakeups": 0,
        "repatriated": null, "mayday": null, "rescued": null, "stalled": 0})"));
}

// ---- the command, also when parts of its data cannot be read

Result<KernelDump> dump() {
    return test::dump_of_two_caches();
}
Result<KernelDump> no_dump() {
    return fail("BPF is denied");
}

class DiagnoseCommand : public testing::Test {
  public:
    DiagnoseCommand() { set_up(); }

    void set_up() {
        monitor_ = {};
        dump_ = dump;
        tree_.write("sys/devices/system/cpu/isolated", "\n");
        tree_.write("sys/devices/system/cpu/online", "0-7\n");
        tree_.write("proc/103/comm", "kworker/u9:3+kcryptd-254:0-1\n");
        tree_.write("proc/103/stat",
                    "103 (kworker/u9:3+kcryptd-254:0-1) R 2 0 0 0 -1 69238880 0 0 0 0 0 41 0 0\n");
        tree_.write("proc/103/status", "Cpus_allowed_list:\t0-7\n");
        for (const double seconds : {0.0, 1.0}) {
            WorkSample sample;
            sample.seconds = seconds;
            sample.workqueues = {workqueue(10, "kcryptd-254:0-1")};
            sample.workqueues[0].unbound = sample.workqueues[0].in_sysfs = true;
            sample.workqueues[0].cpu_time_us = static_cast<std::uint64_t>(seconds * 500'000);
            sample.ran = {{10, "kcryptd_crypt [dm_crypt]", 103, "kworker/u9:3", 400'000'000, 0}};
            monitor_.samples_.push_back(sample);
        }
    }

    test::Ran run(double seconds = 0.02) {
        return test::captured([&] {
            return diagnose(DiagnoseOptions{seconds, true}, {Paths{tree_.root()}, monitor_, dump_});
        });
    }
    json found() {
        const auto got = run();
        EXPECT_EQ(got.code, kOk);
        EXPECT_EQ(got.err, "");
        return json::parse(got.out);
    }

    test::TempTree tree_;
    FakeMonitor monitor_;
    Result<KernelDump> (*dump_)() = dump;
};

TEST_F(DiagnoseCommand, PutsTogetherWhatTheToolsKnow) {
    const json all = found();
    EXPECT_EQ(all.at("attributed"), "ticks");
    EXPECT_EQ(all.at("online"), 8);
    EXPECT_EQ(all.at("missing"), json::array());
    ASSERT_THAT(all.at("work"), SizeIs(1));
    EXPECT_EQ(all.at("work")[0].at("function"), "kcryptd_crypt [dm_crypt]");
    EXPECT_EQ(all.at("workqueues")[0].at("finer"), json({"smt"}));
    EXPECT_TRUE(monitor_.functions_ && monitor_.kworkers_);
    EXPECT_TRUE(monitor_.asked_.empty());
}

TEST_F(DiagnoseCommand, WatchesTheIsolatedCpus) {
    tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
    monitor_.on_cpus_ = std::vector{workqueue(10, "events", 3)};
    const json all = found();
    EXPECT_EQ(all.at("isolated").at("cpus"), "4-5");
    EXPECT_EQ(all.at("isolated").at("work"), json::array()) << "nothing was added meanwhile";
    EXPECT_EQ(monitor_.asked_.list(), "4-5");
}

// Each part fails in turn: the others go on, and what is not seen is said.
TEST_F(DiagnoseCommand, GoesOnWithWhatIsLeft) {
    const auto check = [&](const char* attributed, const std::vector<std::string>& missing, auto change) {
        set_up();
        change();
        const json all = found();
        SCOPED_TRACE(all.dump());
        EXPECT_EQ(all.at("attributed"), attributed);
        EXPECT_EQ(all.at("missing"), json(missing));
        ASSERT_EQ(all.at("work").size(), 1U);
        EXPECT_EQ(all.at("work")[0].at("function").is_null(), std::string(attributed) == "statistics");
    };
    check("ticks", {"the wait for pool->lock"}, [&] { monitor_.limits_ = "the wait for pool->lock"; });
    check("statistics", {"functions, waits and kworkers: no"}, [&] {
        monitor_.attached_ = fail("no");
        for (auto& one : monitor_.samples_) one.ran.reset();
    });
    check("ticks", {"pools and scopes: BPF is denied"}, [&] { dump_ = no_dump; });
    check("ticks",
          {"1 sample of kworkers: there was no room",
           "3 items: not timed (no room, or queued again before the start)"},
          [&] {
              monitor_.samples_[1].lost_ticks = 1;
              monitor_.samples_[0].lost = 5;
              monitor_.samples_[1].lost = 8;
          });
    check("ticks", {}, [&] {  // it fails for a moment
        monitor_.samples_.insert(monitor_.samples_.begin() + 1, WorkSample{});
        monitor_.failures_ = {{1, EAGAIN}};
    });
    const std::string refused = "work on isolated CPUs: no list";
    check("ticks", {refused, refused}, [&] {
        tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
        monitor_.on_cpus_ = fail("no list");
    });
}

TEST_F(DiagnoseCommand, FailsWhereTheWorkqueuesCannotBeListed) {
    for (const std::size_t samples : {0U, 1U}) {
        set_up();
        monitor_.samples_.resize(samples);
        const auto got = run();
        EXPECT_EQ(got.code, kFailure);
        EXPECT_EQ(got.out, "");
        EXPECT_EQ(got.err, "wq-tunectl: no more samples\n");
    }
}

TEST_F(DiagnoseCommand, ASignalEndsItEarlyWithWhatWasSeen) {
    // The signal is blocked here, so it is still pending when the look begins.
    sigset_t set, before;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &set, &before);
    ::raise(SIGINT);
    const auto got = run(3600);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(got.code, kOk);
    const json all = json::parse(got.out);
    EXPECT_LT(all.at("seconds"), 3600);
    EXPECT_THAT(all.at("work"), SizeIs(1));
}

}  // namespace
}  // namespace wq::ctl
