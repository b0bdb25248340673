// SPDX-License-Identifier: LGPL-2.1-or-later
// Kworkers as read from /proc once, and over several readings.
#include <gmock/gmock.h>

#include <tuple>

#include "ctl/observe/diagnosis.h"
#include "temp_tree.h"

namespace wq {
namespace {

using ctl::KworkerWatch;
using testing::SizeIs;

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
    test::TempTree tree_;
};

TEST_F(ReadKworkers, KnowsNameAndWork) {
    task(11, "kworker/0:1-events");
    task(12, "kworker/u8:0+ext4-rsv-conversion", 'R');
    task(13, "kworker/R-kcryptd-254:0");
    task(14, "kworker/1:0H", 'D');
    std::vector<std::tuple<int, std::string, std::string, bool, char>> all;
    for (const auto& one : read()) all.emplace_back(one.pid, one.name, one.work, one.busy, one.state);
    EXPECT_THAT(all,
                testing::ElementsAre(std::tuple(11, "kworker/0:1", "events", false, 'I'),
                                     std::tuple(12, "kworker/u8:0", "ext4-rsv-conversion", true, 'R'),
                                     std::tuple(13, "kworker/R-kcryptd-254:0", "kcryptd-254:0", false, 'I'),
                                     std::tuple(14, "kworker/1:0H", "", false, 'D')));
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
    EXPECT_THAT(read(), testing::IsEmpty());
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

TEST(KworkerWatch, AddsUpWhatEachUsed) {
    KworkerWatch watch;
    watch.add({kworker(1, "events", 100), kworker(2, "events", 7)});
    watch.add({kworker(1, "writeback", 130), kworker(2, "events", 7)});
    watch.add({kworker(1, "events", 131), kworker(2, "events", 7)});
    const auto uses = watch.uses();
    ASSERT_THAT(uses, SizeIs(1)) << "the other one did nothing";
    EXPECT_EQ(uses[0].name, "kworker/1");
    EXPECT_EQ(uses[0].cpu_ns, 31U);
    EXPECT_EQ(uses[0].work, "events");
}

// One that began meanwhile counts with all of its time, one that ended is kept, and a PID that is somebody
// else's begins anew.
TEST(KworkerWatch, FollowsThoseThatComeAndGo) {
    KworkerWatch watch;
    watch.add({kworker(1, "a", 100), kworker(3, "c", 100)});
    watch.add({kworker(1, "a", 110), kworker(2, "b", 40), kworker(3, "c", 3)});
    watch.add({kworker(2, "b", 50), kworker(3, "c", 3)});
    std::vector<std::uint64_t> used;
    for (const auto& one : watch.uses()) used.push_back(one.cpu_ns);
    EXPECT_THAT(used, testing::ElementsAre(10, 50, 3));
}

TEST(KworkerWatch, IsStuckOnlyInOneSleepThroughout) {
    const auto asleep = [](std::uint64_t runs) {
        Kworker out = kworker(1, "flush-8:0", 5);
        out.busy = true;
        out.state = 'D';
        out.runs = runs;
        return out;
    };
    KworkerWatch one, woken, late, idle;
    for (unsigned i = 0; i < 4; i++) {
        one.add({asleep(9)});
        woken.add({asleep(i < 2 ? 9 : 10)});
        late.add({i == 0 ? kworker(1, "flush-8:0", 5) : asleep(9)});
        Kworker last = asleep(9);
        last.busy = false;
        idle.add({last});
    }
    ASSERT_THAT(one.uses(), SizeIs(1));
    EXPECT_TRUE(one.uses()[0].stuck);
    EXPECT_EQ(one.uses()[0].work, "flush-8:0");
    for (const KworkerWatch* other : {&woken, &late, &idle}) EXPECT_THAT(other->uses(), testing::IsEmpty());
}

}  // namespace
}  // namespace wq
