// SPDX-License-Identifier: LGPL-2.1-or-later
// Kworkers as read from /proc once, and over several readings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/observe/kworker_watch.h"
#include "machine/kworker.h"
#include "temp_tree.h"

namespace wq {
namespace {

using ctl::KworkerWatch;
using test::TempTree;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr const char* kWorkerFlags = "69238880";  // contains PF_WQ_WORKER

class ReadKworkers : public testing::Test {
  protected:
    // A task as Linux 6.18 shows it, with 7 ticks of user time and 41 of system time.
    void task(int pid, const std::string& comm, char state = 'I', const std::string& flags = kWorkerFlags) {
        const std::string dir = "proc/" + std::to_string(pid);
        tree_.write(dir + "/comm", comm + "\n");
        tree_.write(
            dir + "/stat",
            std::to_string(pid) + " (" + comm + ") " + state + " 2 0 0 0 -1 " + flags +
                " 0 0 0 0 7 41 0 0 20 0 1 0 25 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0\n");
        tree_.write(dir + "/schedstat", "515954326 5285578857 13363\n");
    }
    [[nodiscard]] std::vector<Kworker> read() const { return read_kworkers(Paths{tree_.root()}); }
    TempTree tree_;
};

TEST_F(ReadKworkers, KnowsNameAndWork) {
    task(11, "kworker/0:1-events");
    task(12, "kworker/u8:0+ext4-rsv-conversion", 'R');
    task(13, "kworker/R-kcryptd-254:0");
    task(14, "kworker/1:0H", 'D');
    const auto all = read();
    ASSERT_THAT(all, SizeIs(4));
    EXPECT_EQ(all[0].pid, 11);
    EXPECT_EQ(all[0].name, "kworker/0:1");
    EXPECT_EQ(all[0].work, "events");
    EXPECT_FALSE(all[0].busy);
    EXPECT_EQ(all[0].state, 'I');
    EXPECT_EQ(all[1].name, "kworker/u8:0");
    EXPECT_EQ(all[1].work, "ext4-rsv-conversion");
    EXPECT_TRUE(all[1].busy);
    EXPECT_EQ(all[1].state, 'R');
    EXPECT_EQ(all[2].name, "kworker/R-kcryptd-254:0");
    EXPECT_EQ(all[2].work, "kcryptd-254:0");
    EXPECT_EQ(all[3].name, "kworker/1:0H");
    EXPECT_EQ(all[3].work, "");
}

TEST_F(ReadKworkers, KnowsTheExactTimeAndTheTicksWithoutIt) {
    task(11, "kworker/0:1-events");
    ASSERT_THAT(read(), SizeIs(1));
    EXPECT_EQ(read()[0].cpu_ns, 515954326U);
    EXPECT_EQ(read()[0].runs, 13363U);
    tree_.remove("proc/11/schedstat");
    ASSERT_THAT(read(), SizeIs(1));
    EXPECT_EQ(read()[0].cpu_ns, 480'000'000U);
}

TEST_F(ReadKworkers, TakesNobodyWhoIsOnlyCalledSo) {
    task(11, "kworker/0:1-events", 'R', "4194304");
    task(12, "bash", 'R');
    tree_.write("proc/13/comm", "kworker/0:2-events\n");  // it exited before stat was read
    tree_.write("proc/14x/comm", "kworker/0:3-events\n");
    tree_.write("proc/15/comm", "kworker/0:4-events\n");
    tree_.write("proc/15/stat", "15 (kworker/0:4-events");
    EXPECT_THAT(read(), IsEmpty());
}

TEST_F(ReadKworkers, KnowsCpusAndWhereItSleeps) {
    tree_.write("proc/11/status", "Name:\tkworker\nCpus_allowed:\t3f\nCpus_allowed_list:\t0-3,6\nMems:\t1\n");
    tree_.write("proc/11/wchan", "blk_mq_freeze_queue_wait");
    tree_.write("proc/12/wchan", "0");
    const Paths paths{tree_.root()};
    EXPECT_EQ(cpus_of_task(paths, 11).list(), "0-3,6");
    EXPECT_EQ(sleeps_in(paths, 11), "blk_mq_freeze_queue_wait");
    EXPECT_TRUE(cpus_of_task(paths, 12).empty());
    EXPECT_EQ(sleeps_in(paths, 12), "");
    EXPECT_EQ(sleeps_in(paths, 13), "");
}

Kworker kworker(int pid, const std::string& work, std::uint64_t cpu_ns) {
    Kworker out;
    out.pid = pid;
    out.name = "kworker/" + std::to_string(pid);
    out.work = work;
    out.cpu_ns = cpu_ns;
    out.runs = cpu_ns;
    return out;
}

Kworker asleep(int pid, std::uint64_t runs) {
    Kworker out = kworker(pid, "flush-8:0", 5);
    out.busy = true;
    out.state = 'D';
    out.runs = runs;
    return out;
}

TEST(KworkerWatch, AddsUpWhatEachUsedByItsWork) {
    KworkerWatch watch;
    watch.add({kworker(1, "events", 100), kworker(2, "events", 7)});
    watch.add({kworker(1, "writeback", 130), kworker(2, "events", 7)});
    watch.add({kworker(1, "events", 131), kworker(2, "events", 7)});
    const auto uses = watch.uses();
    ASSERT_THAT(uses, SizeIs(1)) << "the other one did nothing";
    EXPECT_EQ(uses[0].name, "kworker/1");
    EXPECT_EQ(uses[0].cpu_ns, 31U);
    EXPECT_THAT(uses[0].by_work, UnorderedElementsAre(Pair("writeback", 30), Pair("events", 1)));
    EXPECT_EQ(watch.seen(), 2U);
}

TEST(KworkerWatch, CountsAllOfOneThatBeganMeanwhileAndKeepsOneThatEnded) {
    KworkerWatch watch;
    watch.add({kworker(1, "a", 100)});
    watch.add({kworker(1, "a", 110), kworker(2, "b", 40)});
    watch.add({kworker(2, "b", 50)});
    const auto uses = watch.uses();
    ASSERT_THAT(uses, SizeIs(2));
    EXPECT_EQ(uses[0].cpu_ns, 10U);
    EXPECT_EQ(uses[1].cpu_ns, 50U);
}

TEST(KworkerWatch, APidThatIsSomebodyElsesBeginsAnew) {
    KworkerWatch watch;
    watch.add({kworker(1, "a", 100)});
    watch.add({kworker(1, "a", 3)});
    ASSERT_THAT(watch.uses(), SizeIs(1));
    EXPECT_EQ(watch.uses()[0].cpu_ns, 3U);
}

TEST(KworkerWatch, IsStuckOnlyInOneSleepThroughout) {
    KworkerWatch one, woken, late, idle;
    for (unsigned i = 0; i < 4; i++) {
        one.add({asleep(1, 9)});
        woken.add({asleep(1, i < 2 ? 9 : 10)});
        late.add(i == 0 ? std::vector<Kworker>{kworker(1, "flush-8:0", 5)} : std::vector{asleep(1, 9)});
        Kworker last = asleep(1, 9);
        last.busy = false;
        idle.add({last});
    }
    ASSERT_THAT(one.uses(), SizeIs(1));
    EXPECT_TRUE(one.uses()[0].stuck);
    EXPECT_EQ(one.uses()[0].work, "flush-8:0");
    EXPECT_THAT(woken.uses(), IsEmpty());
    EXPECT_THAT(late.uses(), IsEmpty());
    EXPECT_THAT(idle.uses(), IsEmpty());
}

}  // namespace
}  // namespace wq
